// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

func TestServeMetrics(t *testing.T) {
	var address string
	log := funcr.NewJSON(func(line string) {
		_, address, _ = strings.Cut(line, `"address":"`)
		address, _, _ = strings.Cut(address, `"`)
	}, funcr.Options{})
	stop := startMetricsServer(logr.NewContext(t.Context(), log), "127.0.0.1:0", http.NotFoundHandler())
	answer, err := ask(t, "http://"+address)
	expect.NoError(t, err)
	expect.Equal(t, "status", http.StatusNotFound, answer)
	stop()
	if _, err := ask(t, "http://"+address); err == nil {
		t.Error("metrics are served after the end")
	}
}

func ask(t *testing.T, url string) (status int, err error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	expect.NoError(t, err)
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	answer, err := transport.RoundTrip(request)
	if err != nil {
		return 0, err
	}
	return answer.StatusCode, answer.Body.Close()
}

// A used port does not stop a migration.
func TestServeMetricsFailures(t *testing.T) {
	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	expect.NoError(t, err)
	defer taken.Close()
	cases := map[string]struct {
		address string
		want    []string
	}{
		"nowhere":          {"0", nil},
		"empty":            {"", nil},
		"the port is used": {taken.Addr().String(), []string{"Metrics are not served"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var said []string
			log := funcr.New(func(_, line string) {
				_, message, _ := strings.Cut(line, `"msg"="`)
				message, _, _ = strings.Cut(message, `"`)
				said = append(said, message)
			}, funcr.Options{})
			startMetricsServer(logr.NewContext(t.Context(), log), tc.address, http.NotFoundHandler())()
			expect.Equal(t, "log", tc.want, said)
		})
	}
}
