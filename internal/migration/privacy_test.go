// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package migration

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/testenv"
)

const (
	// host is in every object, and preservedValue in an annotation with preserved data. Migrations
	// rewrite them, and must not show them anywhere.
	host           = "a-secret-host"
	preservedValue = "a-secret-preserved-value"
)

// logRecorder records all log lines.
type logRecorder struct {
	mu   sync.Mutex
	text strings.Builder
}

func (d *logRecorder) read() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.text.String()
}

// logged are the log lines of all runs of the tests at --log-level=debug.
var logged logRecorder

func logTo(t *testing.T) context.Context {
	return logr.NewContext(t.Context(), funcr.New(func(_, line string) {
		logged.mu.Lock()
		logged.text.WriteString(line + "\n")
		logged.mu.Unlock()
		t.Log(line)
	}, funcr.Options{Verbosity: 1}))
}

// testNothingLeaks checks that logs and records of all previous runs, some of them with failures of
// every kind, contain nothing of objects but their names, and not the private key of the client.
func testNothingLeaks(t *testing.T, server *testenv.Server) {
	output := map[string]string{"the logs": logged.read()}
	expect.Contains(t, "the logs, which are to be at debug level and to tell of a failure", output["the logs"], "Object failed")
	records := &corev1.ConfigMapList{}
	expect.NoError(t, server.Client.List(t.Context(), records, client.InNamespace("default")))
	for i := range records.Items {
		for key, text := range records.Items[i].Data {
			output["ConfigMap "+records.Items[i].Name+" "+key] = text
		}
	}
	if len(output) < 4 {
		t.Errorf("only %d records", len(output)-1)
	}
	secrets := []string{host, preservedValue}
	for line := range strings.Lines(string(server.Kubeconfig.KeyData)) {
		if line = strings.TrimSpace(line); len(line) == 64 {
			secrets = append(secrets, line)
		}
	}
	if len(secrets) < 4 {
		t.Errorf("only %d secrets", len(secrets))
	}
	for where, text := range output {
		for _, secret := range secrets {
			if at := strings.Index(text, secret); at >= 0 {
				line := text[strings.LastIndex(text[:at], "\n")+1 : at]
				t.Errorf("%s have a secret after: %.300s", where, line)
			}
		}
	}
}
