//go:build e2e

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/test/docs"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/scenarios"
)

// TestGettingStarted runs the commands of that page, and compares their output.
func TestGettingStarted(t *testing.T) {
	t.Parallel()
	t.Cleanup(func() { remove(t, "databases.shop.example.com") }) // where it ends in the middle
	play(t, newPlayer(t, t.TempDir()), "getting started")
}

// TestRetiring runs the commands of that page: the storage version changes, and the old version is
// retired step by step, with one step reverted. Meanwhile an object is read, and at the end etcd
// has all objects in the new version.
func TestRetiring(t *testing.T) {
	t.Parallel()
	ctx, folder := t.Context(), t.TempDir()
	crontab := inGroup(t, "batch.example.com")
	applySample(ctx, t, crontab, crontab.CRDBoth)
	for _, file := range []string{crontab.Policy, crontab.Objects} {
		path := filepath.Join(folder, file)
		expect.NoError(t, os.WriteFile(path, []byte(readSample(t, crontab, file)), 0o600))
		run(ctx, t, "kubectl", "apply", "-f", path)
		waitReady(ctx, t, crontab.CRD(), v1alpha1.ReasonSucceeded)
	}
	reader := fleet.Read(ctx, crontab.At(crontab.New), crontab.Name, func(object *unstructuredObject) error {
		if host := object.Object["host"]; host != "localhost" {
			return fmt.Errorf("host is %v", host)
		}
		return nil
	})
	expect.NoError(t, os.WriteFile(filepath.Join(folder, "audit.log"), []byte(auditLog), 0o600))
	player := newPlayer(t, folder, "POLICY="+crontab.CRD(), "VERSION="+crontab.Old)
	play(t, player, "retiring")
	if reads, err := reader.Stop(); err != nil || reads == 0 {
		t.Errorf("%d reads, and then: %v", reads, err)
	}
	stored, err := scenarios.ReadStored(ctx, crontab.Group, "crontabs")
	expect.NoError(t, err)
	if stored == nil {
		return // etcd cannot be read here
	}
	if t.Logf("stored: %s", stored); !stored.Only(crontab.Group + "/" + crontab.New) {
		t.Errorf("stored: %s, want all at %s", stored, crontab.New)
	}
}

// auditLog has audit events of API servers, one of them at the version to retire.
const auditLog = `{"objectRef":{"resource":"crontabs","apiGroup":"batch.example.com","apiVersion":"v1beta1"},"userAgent":"helm/v3.19.0","user":{"username":"deployer"}}
{"objectRef":{"resource":"pods","apiVersion":"v1"},"userAgent":"kubelet/v1.37.0","user":{"username":"system:node:one"}}
`

// operatorProgram is the operator's program, which make image builds.
func operatorProgram() string {
	return filepath.Join(teller.Dir, "bin", "linux-"+runtime.GOARCH, "conversion-operator")
}

// newPlayer returns a player with the operator's program in PATH.
func newPlayer(t *testing.T, folder string, environment ...string) *docs.Player {
	t.Helper()
	return &docs.Player{Folder: folder, Environment: append(environment, "PATH="+filepath.Dir(operatorProgram())+":"+os.Getenv("PATH")), Out: t.Output()}
}

// play plays a scene.
func play(t *testing.T, player *docs.Player, scene string) {
	t.Helper()
	for _, page := range parts(t, scene) {
		playPart(t, player, page)
	}
}

// playPart plays a part of a scene. Runbooks show no output, so their commands must find something.
func playPart(t *testing.T, player *docs.Player, page *docs.Page) {
	t.Helper()
	player.Judge = nil
	if strings.HasSuffix(page.Path, "/runbooks.md") {
		player.Judge = hasAnswer
	}
	expect.NoError(t, player.Play(t.Context(), page))
}

func hasAnswer(command, answer string) error {
	if !strings.HasPrefix(command, "export ") && (strings.TrimSpace(answer) == "" || strings.HasPrefix(answer, "No resources found")) {
		return errors.New("there is nothing to see")
	}
	return nil
}

func parts(t *testing.T, scene string) []*docs.Page {
	t.Helper()
	parts, err := docs.Scene(teller.Dir, scene)
	expect.NoError(t, err)
	return parts
}

// TestStory plays what `make demo` plays.
func TestStory(t *testing.T) {
	for _, crontab := range []scenarios.CronTab{scenarios.HostPort(), scenarios.CronSpec()} {
		t.Run(crontab.Group, func(t *testing.T) {
			t.Cleanup(func() { remove(t, crontab.CRD()) }) // others use the name
			play := &scenarios.Play{Teller: teller, Fleet: fleet, CronTab: crontab, Count: 300}
			expect.NoError(t, play.Tell(t.Context()))
		})
	}
}
