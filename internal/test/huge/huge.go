// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package huge has an API server whose objects have as much metadata as tenants can give them, to show
// that a list takes little memory.
package huge

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"runtime/metrics"
	"strconv"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
)

const (
	// Objects is how many objects there are of each resource.
	Objects = 260
	// Annotations is the size of the annotations of each object in bytes: nearly all that an API server
	// allows.
	Annotations = 254 << 10
	// room is how much memory a list may take. All objects together have 64 MiB.
	room = 48 << 20
)

// Heap measures the memory of this process.
type Heap struct {
	mu         sync.Mutex
	base, peak uint64
}

// NewHeap begins to measure.
func NewHeap() *Heap {
	runtime.GC()
	return &Heap{base: inUse()}
}

func inUse() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// Sample measures now.
func (h *Heap) Sample() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.peak = max(h.peak, inUse())
}

// WantFlat fails the test if the heap has grown by more than a few pages.
func (h *Heap) WantFlat(t *testing.T) {
	t.Helper()
	h.Sample()
	t.Logf("the heap grew from %d to %d KiB", h.base>>10, h.peak>>10)
	if h.peak > h.base+room {
		t.Errorf("the heap grew by %d KiB, which is more than %d", (h.peak-h.base)>>10, room>>10)
	}
}

var (
	annotation = strings.Repeat("x", Annotations)
	// fields are as many entries of managedFields as appliers with different names leave.
	fields = func() string {
		var entries []string
		for i := range 100 {
			entries = append(entries, fmt.Sprintf(`{"manager":"m%d","operation":"Apply","apiVersion":"example.com/v1","time":"2026-01-01T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":{}}`, i))
		}
		return strings.Join(entries, ",")
	}()
)

// Server has Objects objects of each resource, and measures the heap while it sends them.
type Server struct {
	*Heap
	Config *rest.Config
}

// NewServer starts a server. Paths in answers are not lists.
func NewServer(t *testing.T, answers map[string]string) *Server {
	t.Helper()
	s := &Server{Heap: NewHeap()}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if answer, found := answers[r.URL.Path]; found {
			fmt.Fprint(w, answer)
			return
		}
		s.list(w, r)
	}))
	t.Cleanup(server.Close)
	s.Config = &rest.Config{QPS: -1, Host: server.URL}
	return s
}

func (s *Server) list(w http.ResponseWriter, r *http.Request) {
	s.Sample()
	from, _ := strconv.Atoi(r.URL.Query().Get("continue"))
	to := Objects
	if limit, err := strconv.Atoi(r.URL.Query().Get("limit")); err == nil {
		to = min(to, from+limit)
	}
	if name, found := strings.CutPrefix(r.URL.Query().Get("fieldSelector"), "metadata.name=o-"); found {
		from, _ = strconv.Atoi(name)
		to = from + 1
	}
	kind := `"apiVersion":"example.com/v1","kind":"CronTabList"`
	switch {
	case strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadataList"):
		kind = `"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadataList"`
	case strings.HasSuffix(r.URL.Path, "/nodes"):
		kind = `"apiVersion":"v1","kind":"NodeList"`
	}
	fmt.Fprintf(w, `{%s,"metadata":{"resourceVersion":"1000"`, kind)
	if to < Objects && r.URL.Query().Get("fieldSelector") == "" {
		fmt.Fprintf(w, `,"continue":"%d","remainingItemCount":%d`, to, Objects-to)
	}
	fmt.Fprint(w, `},"items":[`)
	for i := from; i < to; i++ {
		_, err := fmt.Fprintf(w, `{"apiVersion":"example.com/v1","kind":"CronTab","metadata":{"namespace":"default","name":"o-%03d","uid":"u-%d","resourceVersion":"%d",`+
			`"creationTimestamp":"2026-01-01T00:00:00Z","labels":{"owner":"helm","name":"o-%d","version":"1"},"annotations":{"a":"%s"},"managedFields":[%s]}}`, i, i, i+1, i, annotation, fields)
		if err != nil {
			return // the client has seen enough
		}
		if s.Sample(); i < to-1 {
			fmt.Fprint(w, ",")
		}
	}
	fmt.Fprint(w, "]}")
}
