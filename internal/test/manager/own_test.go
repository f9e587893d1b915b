//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/reviews"
)

// ownSpec is a converter of a user in pods: hand-written, with the certificate that is mounted.
const ownSpec = "type: Image, image: {reference: '" + ownImage + "', port: 19443, certificateMountPath: /certs, args: ['--bind-address=:19443', '--certificates=/certs']}"

// serveOwn is the program of the image. The node replaces the arguments.
func serveOwn(ctx context.Context) error {
	serve, err := listenTLS(strings.TrimPrefix(os.Args[1], "--bind-address="), directoryOf(os.Args), convertByHand)
	if err == nil {
		go func() { _ = serve() }()
		<-ctx.Done()
	}
	return err
}

// startURL starts a converter outside of the cluster, with an address and without a name. It copies the
// certificate that the operator issues, with a delay.
func startURL(t *testing.T, policy string) (spec string) {
	t.Helper()
	free, err := new(net.ListenConfig).Listen(t.Context(), "tcp", net.JoinHostPort(outside, "0"))
	expect.NoError(t, err)
	address := free.Addr().String()
	expect.NoError(t, free.Close())
	dir, key := t.TempDir(), client.ObjectKey{Namespace: system, Name: names.ExternalCertificateSecret(policy)}
	serve, err := listenTLS(address, dir, convertByHand)
	expect.NoError(t, err)
	go func() { _ = serve() }()
	ctx, ended := t.Context(), make(chan struct{})
	t.Cleanup(func() { <-ended }) // before the directory is removed
	go func() {
		defer close(ended)
		ticker := time.NewTicker(500 * time.Millisecond)
		defer ticker.Stop()
		for ctx.Err() == nil {
			secret := &corev1.Secret{}
			if cluster.Get(ctx, key, secret) == nil {
				for _, file := range []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey} {
					_ = os.WriteFile(filepath.Join(dir, file), secret.Data[file], 0o600) // the next round tries again
				}
			}
			<-ticker.C
		}
	}()
	return fmt.Sprintf("type: URL, url: {url: 'https://%s/crontabs'}", address)
}

// convertByHand splits hostPort into host and port for v1, and joins them for other versions.
var convertByHand = reviews.Each(func(object *unstructured.Unstructured, version string) {
	splitOrJoin(object.Object, strings.HasSuffix(version, "/v1"))
	object.SetAPIVersion(version)
})

func splitOrJoin(object map[string]any, split bool) {
	if hostPort, is := object["hostPort"].(string); is && split {
		object["host"], object["port"], _ = strings.Cut(hostPort, ":")
		delete(object, "hostPort")
	}
	if host, is := object["host"].(string); is && !split {
		object["hostPort"] = fmt.Sprintf("%s:%s", host, object["port"])
		delete(object, "host")
		delete(object, "port")
	}
}
