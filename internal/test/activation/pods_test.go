//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package activation

import (
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/internal/conversion"
	"github.com/conversion-operator/conversion-operator/internal/pki"
	"github.com/conversion-operator/conversion-operator/internal/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/plan/workload"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/testenv"
	"github.com/conversion-operator/conversion-operator/internal/webhook"
)

// behaviour changes how a converter answers. The zero value changes nothing.
type behaviour struct {
	// answer replaces the converter's handler.
	answer func(converter http.Handler, w http.ResponseWriter, r *http.Request)
	// untrusted uses a certificate of an authority that no client trusts.
	untrusted bool
	// refuses refuses connections.
	refuses bool
}

// testConverter is the only converter pod of a policy.
type testConverter struct {
	policy string
	// ip is the pod's address for the manager.
	ip string
	// toManager and toAPIServer are its behaviour to each of them.
	toManager, toAPIServer atomic.Pointer[behaviour]
	handler                atomic.Pointer[webhook.Handler]
	certificate            atomic.Pointer[tls.Certificate]
	started                sync.Once
	port                   int32
	servers                []*http.Server
}

var pods atomic.Int32

// startConverter acts as the policy's Deployment, with one pod.
func startConverter(t *testing.T, policy string, toManager, toAPIServer behaviour) *testConverter {
	t.Helper()
	n := pods.Add(1)
	c := &testConverter{policy: policy, ip: fmt.Sprintf("127.0.%d.%d", 1+n/200, 1+n%200)}
	c.toManager.Store(&toManager)
	c.toAPIServer.Store(&toAPIServer)
	c.roll(t)
	return c
}

// roll updates the pod to the Deployment's template.
func (c *testConverter) roll(t *testing.T) {
	t.Helper()
	deployment := &appsv1.Deployment{}
	key := client.ObjectKey{Namespace: system, Name: names.Child(c.policy)}
	expect.Eventually(t, "the Deployment of "+c.policy+" is there", func() (bool, string) {
		err := cluster.Get(t.Context(), key, deployment)
		return err == nil, fmt.Sprint(err)
	})
	c.load(t)
	c.started.Do(func() {
		if !c.toManager.Load().refuses {
			c.listen(t, net.JoinHostPort(c.ip, fmt.Sprint(workload.ContainerPort)), &c.toManager)
		}
		c.port = c.listen(t, net.JoinHostPort(outside, "0"), &c.toAPIServer)
	})
	c.startPod(t, deployment)
	c.expose(t, deployment)
	testenv.RolledOut(t, cluster, deployment, 1)
}

// load loads the rulesets and the certificate that the pod mounts, as a kubelet updates them when
// the pod changes.
func (c *testConverter) load(t *testing.T) {
	t.Helper()
	var plans []webhook.Ruleset
	configMap := &corev1.ConfigMap{}
	expect.NoError(t, cluster.Get(t.Context(), client.ObjectKey{Namespace: system, Name: names.Rulesets(c.policy)}, configMap))
	for key, stored := range configMap.BinaryData {
		hash, _ := conversion.StoredHash(key)
		served, err := webhook.LoadRuleset(hash, stored)
		expect.NoError(t, err)
		plans = append(plans, served)
	}
	handler := webhook.NewHandler(plans, webhook.HandlerOptions{Log: logr.Discard()})
	handler.ServeFailures(func() (*tls.Certificate, error) { return c.certificate.Load(), nil })
	c.handler.Store(handler)
	secret := &corev1.Secret{}
	expect.NoError(t, cluster.Get(t.Context(), client.ObjectKey{Namespace: system, Name: names.CertificateSecret(c.policy)}, secret))
	pair, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	expect.NoError(t, err)
	c.certificate.Store(&pair)
}

// listen serves with the behaviour to one side, and returns the port.
func (c *testConverter) listen(t *testing.T, address string, behaves *atomic.Pointer[behaviour]) int32 {
	t.Helper()
	listener := listen(t, address)
	server := &http.Server{
		ErrorLog: log.New(io.Discard, "", 0),
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if answer := behaves.Load().answer; answer != nil {
				answer(c.handler.Load(), w, r)
				return
			}
			c.handler.Load().ServeHTTP(w, r)
		}),
		TLSConfig: &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			if behaves.Load().untrusted {
				return untrusted(names.ServerName(c.policy, system))
			}
			return c.certificate.Load(), nil
		}},
	}
	c.servers = append(c.servers, server)
	go func() { _ = server.ServeTLS(listener, "", "") }()
	t.Cleanup(func() { _ = server.Close() })
	return int32(listener.Addr().(*net.TCPAddr).Port)
}

func listen(t *testing.T, address string) (listener net.Listener) {
	t.Helper()
	expect.Eventually(t, "no other client listens at "+address, func() (bool, string) {
		var err error
		listener, err = net.Listen("tcp", address)
		return err == nil, fmt.Sprint(err)
	})
	return listener
}

func (c *testConverter) startPod(t *testing.T, deployment *appsv1.Deployment) {
	t.Helper()
	name := fmt.Sprintf("%s-%d", deployment.Name, deployment.Generation)
	old := &corev1.PodList{}
	expect.NoError(t, cluster.List(t.Context(), old, client.InNamespace(system), client.MatchingLabels{names.InstanceLabel: deployment.Name}))
	for i := range old.Items {
		if old.Items[i].Name != name {
			expect.NoError(t, cluster.Delete(t.Context(), &old.Items[i], client.GracePeriodSeconds(0)))
		}
	}
	testenv.RunPod(t, cluster, deployment, testenv.Pod{Name: name, IP: c.ip})
}

// expose adds the pod to its Service, where the API server calls it.
func (c *testConverter) expose(t *testing.T, deployment *appsv1.Deployment) {
	t.Helper()
	port := c.port
	if c.toAPIServer.Load().refuses {
		port = 1 // nothing listens there
	}
	testenv.Expose(t, cluster, client.ObjectKeyFromObject(deployment), map[string]string{names.InstanceLabel: deployment.Name},
		outside, map[string]int32{"https": port})
}

func (c *testConverter) behave(t *testing.T, toManager, toAPIServer behaviour) {
	t.Helper()
	refused := c.toManager.Load().refuses
	c.toManager.Store(&toManager)
	c.toAPIServer.Store(&toAPIServer)
	if refused && !toManager.refuses {
		c.listen(t, net.JoinHostPort(c.ip, fmt.Sprint(workload.ContainerPort)), &c.toManager)
	}
	c.roll(t)
}

// disconnect closes the connections of clients, as a pod that is deleted does.
func (c *testConverter) disconnect() {
	for _, server := range c.servers {
		server.SetKeepAlivesEnabled(false)
	}
}

func untrusted(name string) (*tls.Certificate, error) {
	authority, err := pki.NewAuthority("somebody else", time.Now(), time.Hour)
	if err != nil {
		return nil, err
	}
	leaf, err := pki.IssueLeaf(authority, name, time.Now(), time.Hour)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(leaf.Certificate, leaf.Key)
	return &pair, err
}
