// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/internal/conversion"
	"github.com/conversion-operator/conversion-operator/internal/plan/workload"
	"github.com/conversion-operator/conversion-operator/internal/webhook"
)

// converters serves for all converter pods, with the certificate and the rulesets of the policy in
// the server name.
type converters struct {
	client client.Client
	mu     sync.Mutex
	// handlers are cached by server name and rulesets.
	handlers map[string]http.Handler
}

func newConverters(c client.Client) *converters {
	return &converters{client: c, handlers: map[string]http.Handler{}}
}

// run serves until ctx ends.
func (c *converters) run(ctx context.Context) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort("", strconv.Itoa(workload.ContainerPort)))
	if err != nil {
		return fmt.Errorf("converter pods listen at port %d: %w", workload.ContainerPort, err)
	}
	server := &http.Server{
		Handler: c, ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(os.Stderr, "", 0),
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: c.certificate},
	}
	go func() {
		<-ctx.Done()
		_ = server.Close()
	}()
	if err := server.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func (c *converters) certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: system, Name: child(hello.ServerName) + "-tls"}
	if err := c.client.Get(hello.Context(), key, secret); err != nil {
		return nil, err
	}
	certificate, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	return &certificate, err
}

// child returns the name of a policy's objects from its server name.
func child(serverName string) string {
	name, _, _ := strings.Cut(serverName, ".")
	return name
}

func (c *converters) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	handler, err := c.handler(r.Context(), child(r.TLS.ServerName))
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	handler.ServeHTTP(w, r)
}

// handler returns a handler of all current rulesets of a policy, like a pod that starts now.
func (c *converters) handler(ctx context.Context, name string) (http.Handler, error) {
	configMap := &corev1.ConfigMap{}
	if err := c.client.Get(ctx, client.ObjectKey{Namespace: system, Name: name + "-rulesets"}, configMap); err != nil {
		return nil, err
	}
	keys := slices.Sorted(maps.Keys(configMap.BinaryData))
	name += " " + strings.Join(keys, " ")
	c.mu.Lock()
	defer c.mu.Unlock()
	if made := c.handlers[name]; made != nil {
		return made, nil
	}
	var plans []webhook.Ruleset
	for _, key := range keys {
		hash, _ := conversion.StoredHash(key)
		served, err := webhook.LoadRuleset(hash, configMap.BinaryData[key])
		if err != nil {
			return nil, err
		}
		plans = append(plans, served)
	}
	c.handlers[name] = webhook.NewHandler(plans, webhook.HandlerOptions{})
	return c.handlers[name], nil
}
