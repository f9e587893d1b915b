//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"flag"
	"fmt"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/testenv"
)

var costObjects = flag.Int("objects", 3000, "number of objects of TestCost; the documentation has the result for 100,000")

// mostHeap bounds the memory of a search, for any number of objects.
const mostHeap = 64 << 20

// TestCost bounds requests and memory: one request for each page of 500 objects, and a few for each
// resource. One object in a hundred is a dependent.
func TestCost(t *testing.T) {
	c := &cluster{testenv.For(t, testenv.Options{})}
	c.define(t, apiextensionsv1.NamespaceScoped, "example.com", "crontabs", "CronTab", "v1beta1", "v1")
	owner := c.create(t, custom("example.com/v1", "CronTab", "dep"))
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(16)
	for i := range *costObjects {
		group.Go(func() error {
			object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("object-%06d", i)}, Data: map[string]string{}}
			object.Labels = map[string]string{"app.kubernetes.io/name": "cost", "app.kubernetes.io/instance": object.Name}
			for field := range 20 { // as many entries in managedFields
				object.Data[fmt.Sprintf("field-%d", field)] = "value"
			}
			version := "example.com/v1"
			if i%100 == 0 {
				version = "example.com/v1beta1"
			}
			object.OwnerReferences = []metav1.OwnerReference{reference(owner, version)}
			return c.Client.Create(ctx, object)
		})
	}
	expect.NoError(t, group.Wait())

	var heap uint64
	runtime.GC()
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	began := time.Now()
	report := find(t, c.Kubeconfig, func(o *Options) {
		o.PageSize, o.Most, o.Also = 500, 100, nil
		o.Progress = func(string, int64) {
			var now runtime.MemStats
			runtime.ReadMemStats(&now)
			heap = max(heap, now.HeapAlloc-min(before.HeapAlloc, now.HeapAlloc))
		}
	})
	t.Logf("%d objects: %d requests, %d bytes, %s, %d MiB of heap", report.Cost.Objects, report.Cost.Requests, report.Cost.Bytes, time.Since(began).Round(time.Second/10), heap>>20)
	want := (*costObjects + 99) / 100
	if named := len(report.Dependents) + report.More; named != want || len(report.Dependents) > 100 || len(report.NotChecked) > 0 {
		t.Errorf("%d dependents, %d of them named, want %d; not checked: %v", named, len(report.Dependents), want, report.NotChecked)
	}
	// About 70 resources, each in one request.
	if most := int64(*costObjects/500 + 120); report.Cost.Requests > most {
		t.Errorf("%d requests, want at most %d", report.Cost.Requests, most)
	}
	if heap > mostHeap {
		t.Errorf("%d MiB of heap", heap>>20)
	}
}
