// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestRead: each number is the limit of a request. With a "!", the page was too large.
func TestRead(t *testing.T) {
	for name, test := range map[string]struct {
		// bytes are those of the objects, in order.
		bytes func(i int) int
		total int
		most  int64
		want  string
	}{
		"small objects":                {func(int) int { return 100 }, 1000, 500, "10 40 160 500 500"},
		"objects of 254 KiB":           {func(int) int { return 254 << 10 }, 8, 500, "10! 5! 2 2 2 2"},
		"objects larger than a page":   {func(int) int { return 3 << 20 }, 3, 500, "10! 5! 2! 1 1 1"},
		"large ones after small ones":  {func(i int) int { return map[bool]int{true: 100, false: 254 << 10}[i < 50] }, 56, 500, "10 40 160! 80! 40! 20! 10! 5! 2 2 2"},
		"small ones after a large one": {func(i int) int { return map[bool]int{true: 100, false: 3 << 20}[i > 0] }, 60, 20, "10! 5! 2! 1 1 4 16 20 20"},
		"no more than were asked for":  {func(int) int { return 100 }, 6, 3, "3 3"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				from, _ := strconv.Atoi(r.URL.Query().Get("from"))
				limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
				for i := from; i < min(from+limit, test.total); i++ {
					_, _ = fmt.Fprint(w, strings.Repeat("x", test.bytes(i)))
				}
			}))
			defer server.Close()
			config := &rest.Config{Host: server.URL}
			Bound(config)
			Bound(config)
			client, err := rest.HTTPClientFor(config)
			expect.NoError(t, err)
			var size Size
			var limits []string
			for from := int64(0); from < int64(test.total); {
				var limit int64
				err := size.Read(t.Context(), test.most, func(ctx context.Context, of int64) error {
					limit = of
					request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("%s?from=%d&limit=%d", server.URL, from, limit), nil)
					expect.NoError(t, err)
					response, err := client.Do(request)
					if limits = append(limits, fmt.Sprint(limit)); err != nil {
						limits[len(limits)-1] += "!"
						return err
					}
					return response.Body.Close()
				})
				expect.NoError(t, err)
				from += limit
			}
			expect.Equal(t, "limits", test.want, strings.Join(limits, " "))
		})
	}
}

// Other requests are not bounded, and errors are returned.
func TestOtherRequests(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(w, strings.Repeat("x", 2*maxBytes))
	}))
	config := &rest.Config{Host: server.URL}
	Bound(config)
	client, err := rest.HTTPClientFor(config)
	expect.NoError(t, err)
	get := func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
		expect.NoError(t, err)
		response, err := client.Do(request)
		if err == nil {
			err = response.Body.Close()
		}
		return err
	}
	expect.NoError(t, get(t.Context()))
	server.Close()
	var size Size
	requests := 0
	err = size.Read(t.Context(), 500, func(ctx context.Context, _ int64) error {
		requests++
		return get(ctx)
	})
	if err == nil || requests != 1 {
		t.Errorf("error is %v after %d requests", err, requests)
	}
}
