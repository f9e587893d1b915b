// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package migration

import (
	"bytes"
	"io"
	"net"
	"net/url"
	"sync/atomic"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/migration/contract"
	"github.com/conversion-operator/conversion-operator/internal/migration/migrationtest"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/release"
	"github.com/conversion-operator/conversion-operator/internal/test/testenv"
)

// testLag patches through a second API server on the same etcd, which does not see the change of the
// storage version at first, and which the run cannot ask. That server changes nothing, because it would
// write the same bytes: the audit finds out.
func testLag(t *testing.T, server *testenv.Server) {
	release.Only(t, "TestAuditDetectsALaggingServer", "TestBarrierIsReadAfterPropagation")
	held := &hold{}
	config := testenv.Beside(t, &envtest.APIServer{Path: server.ControlPlane.GetAPIServer().Path, EtcdURL: lateEtcd(t, server.ControlPlane.Etcd.URL, held)})
	r := newStored(t, server, "auditeds", 40)
	late, err := Connect(config, r.spec(""))
	expect.NoError(t, err)
	expect.Eventually(t, "the late server serves the resource", func() (bool, string) {
		shown, err := late.ServedResource(t.Context())
		return shown != nil && err == nil, ""
	})
	held.hold()
	t.Cleanup(held.release)
	r.Change(t, migrationtest.StoreV1)

	engine := r.engine(t, "audited")
	engine.Patcher, engine.Servers = late, &fakeServers{err: forbidden("kubernetes")}
	engine.Preflight, engine.Verify = 0, v1alpha1.MigrationVerifyNone
	var stored []map[string]int
	engine.Observe = func(record contract.Record) {
		if record.State == contract.StateAuditing && record.Repeats == 0 && len(stored) == 0 {
			if record.Current != 40 {
				t.Errorf("the pass counts %+v", record.Counters)
			}
			stored = append(stored, r.Stored(t))
			held.release()
		}
	}
	record := r.mustRun(t, engine)
	expect.Equal(t, "versions in etcd after the first pass", []map[string]int{{"v1beta1": 40}}, stored)
	if record.BarrierKind != contract.BarrierTime || record.Repeats != 1 || !record.Complete() {
		t.Errorf("record is %+v", record)
	}
	r.WantStored(t, map[string]int{"v1": 40})
}

// hold blocks wait while it is held.
type hold struct{ atomic.Pointer[chan struct{}] }

func (h *hold) hold() { h.Store(new(make(chan struct{}))) }

func (h *hold) release() {
	if free := h.Swap(nil); free != nil {
		close(*free)
	}
}

func (h *hold) wait() {
	if free := h.Load(); free != nil {
		<-*free
	}
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
