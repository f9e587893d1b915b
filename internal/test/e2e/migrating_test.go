//go:build e2e

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/test/docs"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/release"
	"github.com/conversion-operator/conversion-operator/internal/test/scenarios"
)

// TestMigrating runs the documented commands of a migration: it is followed, suspended and resumed, an
// object fails and is fixed, and the storage version is rolled back. The runbooks of a failure run
// while it has failed.
func TestMigrating(t *testing.T) {
	release.Only(t, "TestSuspendedMigration", "TestStories")
	t.Parallel()
	ctx := t.Context()
	crontab := inGroup(t, "example.com")
	home := t.TempDir()
	player := &docs.Player{Folder: operatorsFolder(t, crontab), Out: t.Output(), Environment: []string{
		"HOME=" + home, "PATH=" + filepath.Join(home, ".local", "bin") + ":" + pathWithoutPlugins(),
		"POLICY=" + crontab.CRD(), "NAME=job-0042", "NAMESPACE=" + scenarios.Namespace}}
	expect.NoError(t, os.MkdirAll(filepath.Join(home, ".local", "bin"), 0o700))
	setScene(ctx, t, crontab, player.Folder)
	for _, page := range parts(t, "migrating") {
		if page.Blocks[0].Heading == "After" {
			waitPruned(ctx, t, crontab)
		}
		playPart(t, player, page)
	}
}

// pathWithoutPlugins returns PATH without the folders of plugins: `kubectl plugin list` reports
// unreadable folders and every plugin of this machine.
func pathWithoutPlugins() string {
	list := filepath.SplitList(os.Getenv("PATH"))
	return strings.Join(slices.DeleteFunc(list, func(directory string) bool {
		entries, err := os.ReadDir(directory)
		return err != nil || slices.ContainsFunc(entries, func(entry os.DirEntry) bool {
			return strings.HasPrefix(entry.Name(), "kubectl-")
		})
	}), string(filepath.ListSeparator))
}

// waitPruned waits for the last event of a migration, as events are written after the status that
// the scene waits for.
func waitPruned(ctx context.Context, t *testing.T, crontab scenarios.CronTab) {
	t.Helper()
	policy := getPolicy(ctx, t, crontab.CRD())
	expect.Eventually(t, "an event says that storedVersions was pruned", func() (bool, string) {
		events := &corev1.EventList{}
		expect.NoError(t, cluster.List(ctx, events, client.InNamespace(scenarios.Namespace)))
		return slices.ContainsFunc(events.Items, func(event corev1.Event) bool {
			return event.InvolvedObject.UID == policy.UID && event.Reason == v1alpha1.ReasonStoredVersionsPruned
		}), fmt.Sprintf("%d events", len(events.Items))
	})
}

// operatorsFolder returns a folder with the files that the pages name: the samples, with a policy
// that migrates on demand, and the files for diff.
func operatorsFolder(t *testing.T, crontab scenarios.CronTab) string {
	t.Helper()
	folder := t.TempDir()
	write := func(name, from string, changes ...string) {
		text, err := os.ReadFile(filepath.Join(teller.Dir, crontab.Samples, from))
		expect.NoError(t, err)
		changed := strings.NewReplacer(changes...).Replace(string(text))
		if len(changes) > 0 && changed == string(text) {
			t.Fatalf("%s has none of %q", from, changes)
		}
		expect.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(changed), 0o600))
	}
	for _, name := range []string{crontab.CRDBoth, crontab.CRDStorage, crontab.Objects} {
		write(name, name)
	}
	write(crontab.Policy, crontab.Policy, "mode: Automatic", "mode: OnTrigger\n    maxWritesPerSecond: 15")
	write("policy.yaml", crontab.Policy, "        - format:", "        - drop: {from: .note}\n        - format:")
	write("crd.yaml", crontab.CRDStorage, "          note: {type: string}\n", "")
	expect.NoError(t, os.Symlink(operatorProgram(), filepath.Join(folder, "conversion-operator")))
	return folder
}

// jobs makes 213 objects with the samples. A run tries about every eleventh of them before it
// begins, including job-0042.
const jobs = 210

// setScene applies a policy that waits for a migration, and objects of which the migration cannot
// write one: job-0042.
func setScene(ctx context.Context, t *testing.T, crontab scenarios.CronTab, folder string) {
	t.Helper()
	apply := func(file string) { run(ctx, t, "kubectl", "apply", "-f", file) }
	apply(filepath.Join(folder, crontab.CRDBoth))
	apply(filepath.Join(folder, crontab.Policy))
	waitReady(ctx, t, crontab.CRD(), v1alpha1.ReasonSucceeded)
	apply(filepath.Join(folder, crontab.Objects))
	expect.NoError(t, fleet.Create(ctx, crontab.At(crontab.Old), jobs, crontab.Object))
	patch := []byte(`{"metadata":{"labels":{"frozen":"until-the-audit"}}}`)
	expect.NoError(t, cluster.Patch(ctx, crontab.Object(42), client.RawPatch(types.MergePatchType, patch)))
	rule := filepath.Join(teller.Dir, "internal", "test", "e2e", "testdata", "frozen.yaml")
	apply(rule)
	t.Cleanup(func() { run(context.WithoutCancel(ctx), t, "kubectl", "delete", "-f", rule) })
	expect.Eventually(t, "job-0042 is frozen", func() (bool, string) {
		err := cluster.Patch(ctx, crontab.Object(42), client.RawPatch(types.MergePatchType, []byte("{}")), client.DryRunAll)
		return err != nil && strings.Contains(err.Error(), "is frozen until"), ""
	})
	apply(filepath.Join(folder, crontab.CRDStorage))
	expect.Eventually(t, "a migration waits for its trigger", func() (bool, string) {
		migrated := apimeta.FindStatusCondition(getPolicy(ctx, t, crontab.CRD()).Status.Conditions, v1alpha1.StorageMigratedCondition)
		return migrated.Status == metav1.ConditionUnknown && migrated.Reason == v1alpha1.ReasonNotRequested, migrated.Reason
	})
}
