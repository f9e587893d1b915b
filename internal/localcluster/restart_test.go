// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e && linux

package localcluster

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestComponentsStartAgain kills etcd and the API server of a cluster with Restart.
func TestComponentsStartAgain(t *testing.T) {
	c := upForTest(t, Options{Name: "restart", ControlPlaneOnly: true, Restart: true})
	kubectl(t, c, "", "create", "namespace", "kept")
	for _, component := range []component{c.spec.etcd(), c.spec.apiServer()} {
		killed := pidOf(t, component)
		expect.NoError(t, unix.Kill(killed, unix.SIGKILL))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := poll(ctx, component.name, func(context.Context) error {
			if now := pidOf(t, component); now == 0 || now == killed {
				return errors.New("it was not started again")
			}
			return c.Command(ctx, "kubectl", "get", "namespace", "kept").Run()
		})
		expect.NoError(t, err)
	}
}

// pidOf finds the process of a component by its whole command line. It returns 0 if there is none.
func pidOf(t *testing.T, c component) int {
	t.Helper()
	want := []byte(c.name + "\x00")
	for _, arg := range c.args {
		want = append(want, arg+"\x00"...)
	}
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	expect.NoError(t, err)
	for _, file := range files {
		if line, err := os.ReadFile(file); err == nil && bytes.Equal(line, want) {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			expect.NoError(t, err)
			return pid
		}
	}
	return 0
}
