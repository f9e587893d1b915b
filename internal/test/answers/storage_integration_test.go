//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"context"
	"net"
	"net/url"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/testenv"
)

// recordStorage records answers after etcd was compacted, while it is full, does not answer, and
// cannot be reached. It uses the resource of a case that does not change it, and for the last two an API server
// behind a gate.
func (r *recorder) recordStorage(t *testing.T, behind *rest.Config, gate *gate) {
	t.Helper()
	const resource = "conflict"
	objects := r.at(t, resource, "v1", r.Kubeconfig)
	_, err := r.at(t, resource, "v1beta1", r.Kubeconfig).Create(t.Context(), named(object(resource), "second"), metav1.CreateOptions{})
	expect.NoError(t, err)
	page, err := objects.List(t.Context(), metav1.ListOptions{Limit: 1})
	expect.NoError(t, err)
	expect.NoError(t, r.patch(t, resource, `{"host": "b"}`, metav1.PatchOptions{}))
	_, revision, err := r.Etcd.List(t.Context(), "/registry/"+Group+"/"+resource+"/")
	expect.NoError(t, err)
	expect.NoError(t, r.Etcd.Compact(t.Context(), revision))
	_, err = objects.List(t.Context(), metav1.ListOptions{Limit: 1, Continue: page.GetContinue()})
	r.record(t, "list-expired", List, err)

	expect.NoError(t, r.Etcd.SetFull(t.Context(), true))
	r.record(t, "etcd-full", Patch, r.patch(t, resource, `{"host": "c"}`, metav1.PatchOptions{}))
	expect.NoError(t, r.Etcd.SetFull(t.Context(), false))

	t.Cleanup(func() { gate.set(open) }) // an API server without etcd does not stop
	for _, outage := range []struct {
		name  string
		state gateState
	}{{"etcd-hangs", held}, {"etcd-unreachable", closed}} {
		gate.set(outage.state)
		var err error
		for range 5 {
			_, err = r.at(t, resource, "v1", behind).Patch(t.Context(), Object, types.MergePatchType, []byte(`{"host": "d"}`), metav1.PatchOptions{})
			// An API server resets the request if its time ends while it writes the answer.
			if err == nil || apierrors.ReasonForError(err) != metav1.StatusReasonUnknown {
				break
			}
		}
		r.record(t, outage.name, Patch, err)
	}
}

// startBehind starts another API server on the same etcd, through the gate.
func (r *recorder) startBehind(t *testing.T, gate *gate) *rest.Config {
	t.Helper()
	etcd := &url.URL{Scheme: "http", Host: gate.listener.Addr().String()}
	server := &envtest.APIServer{Path: r.ControlPlane.GetAPIServer().Path, EtcdURL: etcd}
	server.Configure().Set("watch-cache", "false").Set("request-timeout", "5s")
	user := testenv.Beside(t, server)
	expect.Success(t, "it serves a resource", func(ctx context.Context) error {
		_, err := r.at(t, "conflict", "v1", user).Get(ctx, Object, metav1.GetOptions{})
		return err
	})
	return user
}

// gate is a proxy of etcd.
type gate struct {
	listener net.Listener
	target   string

	mu    sync.Mutex
	state gateState
	conns []net.Conn
}

// gateState is what a gate does.
type gateState int

const (
	open gateState = iota
	// held drops all data.
	held
	// closed closes all connections.
	closed
)

func newGate(t *testing.T, target string) *gate {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	expect.NoError(t, err)
	g := &gate{listener: listener, target: target}
	t.Cleanup(func() {
		_ = listener.Close()
		g.set(closed)
	})
	go g.accept()
	return g
}

func (g *gate) accept() {
	for {
		from, err := g.listener.Accept()
		if err != nil {
			return
		}
		to, err := net.Dial("tcp", g.target)
		if err != nil {
			_ = from.Close()
			continue
		}
		if !g.connect(from, to) {
			_, _ = from.Close(), to.Close() // etcd does not stop while a connection says nothing
			continue
		}
		go g.copy(to, from)
		go g.copy(from, to)
	}
}

// connect takes a pair of connections, unless the gate is closed.
func (g *gate) connect(from, to net.Conn) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.state != closed {
		g.conns = append(g.conns, from, to)
	}
	return g.state != closed
}

func (g *gate) copy(to, from net.Conn) {
	buffer := make([]byte, 1<<16)
	for {
		n, err := from.Read(buffer)
		if n > 0 && g.is() != held {
			_, _ = to.Write(buffer[:n]) // the next read fails, too
		}
		if err != nil {
			_ = to.Close()
			return
		}
	}
}

func (g *gate) is() gateState {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.state
}

// set changes the state. Connections that lost data cannot be used again.
func (g *gate) set(state gateState) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.state = state
	if state != held {
		for _, conn := range g.conns {
			_ = conn.Close()
		}
		g.conns = nil
	}
}
