// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
)

// A client that sends the patch again by itself would send it on an old look
// at the definition.
func TestPatchIsSentOnceHoweverSoonTheServerAsksForItAgain(t *testing.T) {
	var requests atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if want := "PATCH /apis/example.com/v1/namespaces/ns/crontabs/a"; r.Method+" "+r.URL.Path != want {
			t.Errorf("request is %s %s, want %s", r.Method, r.URL.Path, want)
		}
		requests.Add(1)
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	defer server.Close()
	cluster, err := Connect(&rest.Config{Host: server.URL}, &testSpec)
	if err != nil {
		t.Fatal(err)
	}
	_, err = cluster.Patch(t.Context(), Patch{Namespace: "ns", Name: "a", Body: []byte("{}")})
	seconds, _ := apierrors.SuggestsClientDelay(err)
	if diff := cmp.Diff([]int{1, 7}, []int{int(requests.Load()), seconds}); diff != "" {
		t.Errorf("requests and seconds to wait (-want +got):\n%s\nerror is %v", diff, err)
	}
}
