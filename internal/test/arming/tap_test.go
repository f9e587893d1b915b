//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package arming

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// tapped is how the manager reaches the API server: writes of a group's objects pass
// the tap that a test has set for it.
type tapped struct{ next http.RoundTripper }

// tap answers a patch in the API server's place, or by passing it on.
type tap func(r *http.Request, body string, pass func() (*http.Response, error)) (*http.Response, error)

// taps are those of groups, by their names.
var taps sync.Map

// setTap lets a function see the manager's patches of objects of a group, and of its
// CustomResourceDefinition, until the test ends.
func setTap(t *testing.T, group string, f tap) {
	t.Helper()
	taps.Store(group, f)
	t.Cleanup(func() { taps.Delete(group) })
}

func (c *tapped) RoundTrip(r *http.Request) (*http.Response, error) {
	pass := func() (*http.Response, error) { return c.next.RoundTrip(r) }
	if r.Method != http.MethodPatch {
		return pass()
	}
	var found tap
	taps.Range(func(group, set any) bool {
		if strings.Contains(r.URL.Path, "/apis/"+group.(string)+"/") || strings.HasSuffix(r.URL.Path, "/customresourcedefinitions/crontabs."+group.(string)) {
			found = set.(tap)
		}
		return found == nil
	})
	if found == nil {
		return pass()
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	_ = r.Body.Close()
	r.Body = io.NopCloser(bytes.NewReader(body))
	return found(r, string(body), pass)
}
