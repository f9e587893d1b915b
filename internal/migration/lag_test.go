// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package migration

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/release"
	"github.com/conversion-operator/conversion-operator/internal/test/testenv"
)

// lateServer is a second API server on the same etcd. While it is held, it does not see changed
// definitions: it shows the old storage version and writes at it.
type lateServer struct {
	config *rest.Config
	held   *hold
}

func testLag(t *testing.T, c *cluster) {
	release.Only(t, "TestAuditDetectsALaggingServer", "TestBarrierIsReadAfterPropagation")
	late := c.startLateServer(t)
	t.Run("the barrier waits for it", func(t *testing.T) { testBarrierWaits(t, c.newStored(t, "waiteds", 40), late) })
	t.Run("the audit catches it", func(t *testing.T) { testAuditCatches(t, c.newStored(t, "auditeds", 40), late) })
}

// The run checks both servers, and patches only when both show the storage version.
func testBarrierWaits(t *testing.T, r *resource, late *lateServer) {
	late.flip(t, r)
	engine := r.engine(t, "waited")
	engine.Patcher = r.through(t, late.config)
	asked := 0
	engine.Servers = serverMap{"first": engine.Discovery, "late": discoveryFunc(func(ctx context.Context) (*metav1.APIResource, error) {
		if asked++; asked == 3 {
			late.held.release()
		}
		return r.through(t, late.config).ServedResource(ctx)
	})}
	engine.Preflight = 0
	record := r.mustRun(t, "rewritten through the late server", engine)
	if record.BarrierKind != v1alpha1.BarrierAllServers || record.APIServers != 2 || record.Repeats != 0 || record.Rewritten != 40 {
		t.Errorf("record is %+v", record)
	}
	if asked < 4 {
		t.Errorf("the late server was asked %d times: it was not late", asked)
	}
	r.wantStored(t, map[string]int{"v1": 40})
}

// The run cannot check the late server. That server changes nothing, because it would write the
// same bytes.
func testAuditCatches(t *testing.T, r *resource, late *lateServer) {
	late.flip(t, r)
	engine := r.engine(t, "audited")
	engine.Patcher = r.through(t, late.config)
	engine.Servers = serverMap{}
	engine.Preflight, engine.Verify = 0, v1alpha1.MigrationVerifyNone
	var stored []map[string]int
	engine.Checkpoints = storeFunc{engine.Checkpoints, func(data map[string]string) {
		record, err := contract.ParseRecord([]byte(data[contract.RecordKey]))
		expect.NoError(t, err)
		if record.State == contract.StateAuditing && record.Repeats == 0 && len(stored) == 0 {
			if record.Current != 40 {
				t.Errorf("the pass counts %+v", record.Counters)
			}
			stored = append(stored, r.stored(t))
			late.held.release()
		}
	}}
	record := r.mustRun(t, "rewritten through the late server", engine)
	if diff := cmp.Diff([]map[string]int{{"v1beta1": 40}}, stored); diff != "" {
		t.Errorf("versions in etcd after the first pass (-want +got):\n%s", diff)
	}
	if record.BarrierKind != v1alpha1.BarrierTime || record.Repeats != 1 || !record.Complete() {
		t.Errorf("record is %+v", record)
	}
	r.wantStored(t, map[string]int{"v1": 40})
}

// flip changes the storage version while the late server is held.
func (l *lateServer) flip(t *testing.T, r *resource) {
	t.Helper()
	crd := r.definition()
	expect.NoError(t, r.client.Get(t.Context(), client.ObjectKeyFromObject(crd), crd))
	r.pin = contract.Pin{Name: crd.Name, UID: crd.UID, Generation: crd.Generation}
	waitFor(t, "the late server serves the resource", func(ctx context.Context) (bool, error) {
		shown, err := r.through(t, l.config).ServedResource(ctx)
		return shown != nil && err == nil, nil
	})
	l.held.hold()
	t.Cleanup(l.held.release)
	r.flip(t)
}

// serverMap implements Servers for API servers by name.
type serverMap map[string]Discovery

func (s serverMap) Addresses(context.Context) (addresses []string, leases int, err error) {
	if len(s) == 0 {
		return nil, 0, forbidden("kubernetes")
	}
	for address := range s {
		addresses = append(addresses, address)
	}
	return addresses, len(addresses), nil
}

func (s serverMap) ServedResourceAt(ctx context.Context, address string) (*metav1.APIResource, error) {
	return s[address].ServedResource(ctx)
}

// through returns the resource as one API server serves it.
func (r *resource) through(t *testing.T, config *rest.Config) *Cluster {
	t.Helper()
	c, err := Connect(config, r.spec(""))
	expect.NoError(t, err)
	return c
}

func (c *cluster) startLateServer(t *testing.T) *lateServer {
	t.Helper()
	held := &hold{}
	held.release()
	server := &envtest.APIServer{Path: c.server.Path, EtcdURL: lateEtcd(t, c.etcdURL, held)}
	return &lateServer{config: testenv.Beside(t, server), held: held}
}

// hold blocks wait until it is released.
type hold struct {
	mu   sync.Mutex
	free chan struct{}
}

func (h *hold) hold() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.free = make(chan struct{})
}

func (h *hold) release() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.free == nil {
		h.free = make(chan struct{})
	}
	select {
	case <-h.free:
	default:
		close(h.free)
	}
}

func (h *hold) wait() {
	h.mu.Lock()
	free := h.free
	h.mu.Unlock()
	<-free
}

// lateEtcd is a proxy to etcd. While it is held, connections that read definitions get no answers.
func lateEtcd(t *testing.T, etcd *url.URL, held *hold) *url.URL {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	expect.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			go proxy(from, etcd.Host, held)
		}
	}()
	return &url.URL{Scheme: "http", Host: listener.Addr().String()}
}

func proxy(from net.Conn, address string, held *hold) {
	defer func() { _ = from.Close() }()
	server, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	late := &atomic.Bool{}
	go func() {
		_, _ = io.Copy(server, &spy{from, late})
		_ = server.Close()
	}()
	_, _ = io.Copy(from, &heldBack{server, late, held})
}

// spy records whether a connection reads definitions.
type spy struct {
	io.Reader
	late *atomic.Bool
}

func (s *spy) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if bytes.Contains(p[:n], []byte("/customresourcedefinitions/")) {
		s.late.Store(true)
	}
	return n, err
}

// heldBack forwards what it reads unless it is held.
type heldBack struct {
	io.Reader
	late *atomic.Bool
	held *hold
}

func (h *heldBack) Read(p []byte) (int, error) {
	n, err := h.Reader.Read(p)
	if h.late.Load() {
		h.held.wait()
	}
	return n, err
}
