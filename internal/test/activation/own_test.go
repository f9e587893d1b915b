//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package activation

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/internal/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/testenv"
)

// imagePort is the port of the image, at an address of its own.
const imagePort = 19443

// ownConverter is a converter of a user: hand-written, with a certificate from a Secret.
type ownConverter struct {
	policy, serverName string
	// secret is the mounted Secret, or the source of its copy.
	secret      string
	certificate atomic.Pointer[tls.Certificate]
	// run is called once the policy exists.
	run func(t *testing.T)
}

// startImage acts as the Deployment of an image, with one pod.
func startImage(t *testing.T, group string) (made *ownConverter, spec string) {
	t.Helper()
	policy := "crontabs." + group
	c := &ownConverter{policy: policy, serverName: names.ServerName(policy, system), secret: names.CertificateSecret(policy)}
	n := pods.Add(1)
	pod := &testConverter{policy: policy, ip: fmt.Sprintf("127.0.%d.%d", 1+n/200, 1+n%200)}
	c.run = func(t *testing.T) {
		t.Helper()
		deployment := imageDeployment(t, policy)
		c.mount(t)
		c.listen(t, net.JoinHostPort(pod.ip, fmt.Sprint(imagePort)))
		port := c.listen(t, net.JoinHostPort(outside, "0"))
		testenv.RunPod(t, cluster, deployment, testenv.Pod{Name: deployment.Name + "-0", IP: pod.ip,
			Node: "node"}) // a pod without a node has mounted nothing
		testenv.Expose(t, cluster, client.ObjectKey{Namespace: system, Name: names.Child(policy)}, nil, outside,
			map[string]int32{deployment.Spec.Template.Spec.Containers[0].Ports[0].Name: port})
	}
	return c, fmt.Sprintf("image: {reference: 'example.com/crontab:1', port: %d}", imagePort)
}

func imageDeployment(t *testing.T, policy string) *appsv1.Deployment {
	t.Helper()
	list := &appsv1.DeploymentList{}
	expect.Eventually(t, "there is a Deployment of the image", func() (bool, string) {
		expect.NoError(t, cluster.List(t.Context(), list, client.InNamespace(system),
			client.MatchingLabels{names.InstanceLabel: names.Child(policy)}, client.HasLabels{names.RevisionLabel}))
		return len(list.Items) == 1, fmt.Sprintf("%d Deployments", len(list.Items))
	})
	return &list.Items[0]
}

// startService starts a converter behind a Service of its own.
func startService(t *testing.T, group string) (made *ownConverter, spec string) {
	t.Helper()
	policy, name := "crontabs."+group, strings.ReplaceAll(group, ".", "-")
	c := &ownConverter{policy: policy, serverName: name + ".default.svc", secret: names.ExternalCertificateSecret(policy)}
	expect.NoError(t, cluster.Create(t.Context(), &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "https", Port: 443}}}}))
	c.run = func(t *testing.T) {
		t.Helper()
		c.mount(t)
		testenv.Expose(t, cluster, client.ObjectKey{Namespace: "default", Name: name}, nil, outside,
			map[string]int32{"https": c.listen(t, net.JoinHostPort(outside, "0"))})
	}
	return c, "service: {namespace: default, name: " + name + "}"
}

// startURL starts a converter with an address and without a name.
func startURL(t *testing.T, group string) (made *ownConverter, spec string) {
	t.Helper()
	policy := "crontabs." + group
	c := &ownConverter{policy: policy, serverName: outside, secret: names.ExternalCertificateSecret(policy)}
	port := c.listen(t, net.JoinHostPort(outside, "0"))
	c.run = c.mount
	return c, fmt.Sprintf("url: 'https://%s/crontabs'", net.JoinHostPort(outside, fmt.Sprint(port)))
}

// mount loads the certificate, and reloads it after changes with a delay, like kubelets and clients
// that copy Secrets.
func (c *ownConverter) mount(t *testing.T) {
	t.Helper()
	expect.Eventually(t, "there is a certificate to serve", func() (bool, string) {
		err := c.load(t)
		return err == nil, fmt.Sprint(err)
	})
	ctx := t.Context()
	go func() {
		ticker := time.NewTicker(500 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				_ = c.load(t) // a missing or incomplete pair is loaded later
			}
		}
	}()
}

func (c *ownConverter) load(t *testing.T) error {
	secret := &corev1.Secret{}
	if err := cluster.Get(t.Context(), client.ObjectKey{Namespace: system, Name: c.secret}, secret); err != nil {
		return err
	}
	pair, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err == nil {
		c.certificate.Store(&pair)
	}
	return err
}

// listen serves until the test ends, and returns the port. Each request needs its own connection,
// so that each verifies the certificate.
func (c *ownConverter) listen(t *testing.T, address string) int32 {
	t.Helper()
	listener := listen(t, address)
	server := &http.Server{
		Handler: http.HandlerFunc(convertByHand), ErrorLog: log.New(io.Discard, "", 0),
		TLSConfig: &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			if pair := c.certificate.Load(); pair != nil {
				return pair, nil
			}
			return nil, errors.New("no certificate yet")
		}},
	}
	server.SetKeepAlivesEnabled(false)
	go func() { _ = server.ServeTLS(listener, "", "") }()
	t.Cleanup(func() { _ = server.Close() })
	return int32(listener.Addr().(*net.TCPAddr).Port)
}

// convertByHand splits hostPort into host and port for v1, and joins them for other versions.
func convertByHand(w http.ResponseWriter, r *http.Request) {
	review := &apiextensionsv1.ConversionReview{}
	if err := json.NewDecoder(r.Body).Decode(review); err != nil || review.Request == nil {
		http.Error(w, "no ConversionReview", http.StatusBadRequest)
		return
	}
	response := &apiextensionsv1.ConversionResponse{UID: review.Request.UID, Result: metav1.Status{Status: metav1.StatusSuccess}}
	for _, raw := range review.Request.Objects {
		object := map[string]any{}
		_ = json.Unmarshal(raw.Raw, &object) // API servers send objects
		splitOrJoin(object, strings.HasSuffix(review.Request.DesiredAPIVersion, "/v1"))
		object["apiVersion"] = review.Request.DesiredAPIVersion
		text, _ := json.Marshal(object) // it was read from JSON
		response.ConvertedObjects = append(response.ConvertedObjects, runtime.RawExtension{Raw: text})
	}
	review.Request, review.Response = nil, response
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review)
}

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
