//go:build e2e

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/test/docs"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/incompressible"
	"github.com/conversion-operator/conversion-operator/internal/test/release"
	"github.com/conversion-operator/conversion-operator/internal/test/scenarios"
)

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
		waitReady(ctx, t, crontab, v1alpha1.ReasonSucceeded)
	}
	reader := fleet.Read(ctx, crontab.At(crontab.New), crontab.Name, func(object *unstructuredObject) error {
		if host := object.Object["host"]; host != "localhost" {
			return fmt.Errorf("host is %v", host)
		}
		return nil
	})
	expect.NoError(t, os.WriteFile(filepath.Join(folder, "audit.log"), []byte(auditLog), 0o600))
	play(t, newPlayer(t, folder, "POLICY="+crontab.CRD(), "VERSION="+crontab.Old), "retiring")
	expect.NoError(t, reader.Check())
	items, err := fleet.List(ctx, crontab.At(crontab.New))
	expect.NoError(t, err)
	checkStored(ctx, t, crontab, len(items))
}

// auditLog has audit events of API servers, one of them at the version to retire.
const auditLog = `{"objectRef":{"resource":"crontabs","apiGroup":"batch.example.com","apiVersion":"v1beta1"},"userAgent":"helm/v3.19.0","user":{"username":"deployer"}}
{"objectRef":{"resource":"pods","apiVersion":"v1"},"userAgent":"kubelet/v1.37.0","user":{"username":"system:node:one"}}
`

// TestMigrating runs the documented commands of a migration: it is followed, suspended and resumed, an
// object fails and is fixed, and the storage version is rolled back. The runbooks of a failure run
// while it has failed.
func TestMigrating(t *testing.T) {
	release.Only(t, "TestSuspendedMigration", "TestStories")
	t.Parallel()
	ctx := t.Context()
	crontab := inGroup(t, "example.com")
	home := t.TempDir()
	programs := filepath.Join(home, ".local", "bin")
	player := &docs.Player{Folder: operatorsFolder(t, crontab), Out: t.Output(), Environment: []string{
		"HOME=" + home, "PATH=" + programs + ":" + pathWithoutPlugins(),
		"POLICY=" + crontab.CRD(), "NAME=job-0042", "NAMESPACE=" + scenarios.Namespace}}
	expect.NoError(t, os.MkdirAll(programs, 0o700))
	setScene(ctx, t, crontab, player.Folder)
	for _, page := range parts(t, "migrating") {
		if page.Blocks[0].Heading == "After" {
			waitEvent(ctx, t, crontab, v1alpha1.ReasonStoredVersionsPruned)
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
	waitReady(ctx, t, crontab, v1alpha1.ReasonSucceeded)
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
	waitMessage(ctx, t, crontab, v1alpha1.StorageMigratedCondition, v1alpha1.ReasonNotRequested, "")
}

// TestMistakes runs the runbooks for a client that drops the conversion, and for an object whose note was
// dropped. The guard refuses such a write; without it, the operator reverts the write.
func TestMistakes(t *testing.T) {
	release.Only(t, "TestDrift", "TestGuard", "TestDiscarding")
	t.Parallel()
	ctx := t.Context()
	crontab := inGroup(t, "mistakes.example.com")
	applySample(ctx, t, crontab, crontab.Policy)
	change(ctx, t, crontab, `{"spec":{"converter":{"declarative":{"overflow":"Drop"}}}}`)
	applySample(ctx, t, crontab, crontab.CRDBoth)
	waitReady(ctx, t, crontab, v1alpha1.ReasonSucceeded)
	expect.NoError(t, fleet.Create(ctx, crontab.At(crontab.Old), objects, crontab.Object))
	drop := func(ctx context.Context) error {
		return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
			crd := getCRD(ctx, t, crontab)
			crd.Spec.Conversion = nil
			return cluster.Update(ctx, crd)
		})
	}
	if err := drop(ctx); !apierrors.IsForbidden(err) {
		t.Errorf("the guard does not refuse the write: %v", err)
	}
	run(ctx, t, "kubectl", "delete", "validatingadmissionpolicybinding", "conversion-guard.conversion-operator.io")
	expect.Success(t, "the write is accepted", drop)
	run(ctx, t, "kubectl", "apply", "-k", "config/guard")
	expect.Eventually(t, "the conversion is back", func() (bool, string) {
		strategy := getCRD(ctx, t, crontab).Spec.Conversion.Strategy
		return strategy == apiextensionsv1.WebhookConverter, string(strategy)
	})
	expect.Success(t, "objects convert again", func(ctx context.Context) error { return readAll(ctx, crontab) })
	waitReady(ctx, t, crontab, v1alpha1.ReasonSucceeded)

	large := crontab.Object(objects + 1)
	large.Object["note"] = incompressible.Text(300 << 10)
	expect.NoError(t, cluster.Create(ctx, large))
	play(t, newPlayer(t, t.TempDir(), "POLICY="+crontab.CRD()), "mistakes")
}

// TestGrantedRights: if an administrator grants rights instead of the manager, the policy reports
// each missing right with the commands that grant it, and continues after they are run: to read a
// sample, and to migrate. The manager creates and deletes no role.
func TestGrantedRights(t *testing.T) {
	release.Only(t, "TestGrants")
	ctx := t.Context()
	crontab := inGroup(t, "granted.example.com")
	granted := []string{names.ReadRights(crontab.CRD()), names.MigrationRights(crontab.CRD())}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(ctx)
		for _, name := range append(granted, "conversion-operator-definitions") {
			run(ctx, t, "kubectl", "delete", "--ignore-not-found", "clusterrole/"+name, "clusterrolebinding/"+name)
		}
		reinstall(ctx, t)
		// The previous managers look only after a minute whether they may grant again.
		run(ctx, t, "kubectl", "-n", system, "rollout", "restart", manager)
		waitRolledOut(ctx, t)
	})
	folder := t.TempDir()
	kustomize(t, folder, os.Getenv("E2E_IMAGE"), "granted-rights")
	play(t, newPlayer(t, folder), "granting none")
	applySample(ctx, t, crontab, crontab.Policy)
	applySample(ctx, t, crontab, crontab.CRDBefore)
	waitReady(ctx, t, crontab, v1alpha1.ReasonWaitingForVersion)
	expect.NoError(t, fleet.Create(ctx, crontab.At(crontab.Old), objects, crontab.Object))
	applySample(ctx, t, crontab, crontab.CRDBoth)
	grantAsAsked(ctx, t, crontab, v1alpha1.ConversionVerifiedCondition)
	waitReady(ctx, t, crontab, v1alpha1.ReasonSucceeded)

	applySample(ctx, t, crontab, crontab.CRDStorage)
	grantAsAsked(ctx, t, crontab, v1alpha1.StorageMigratedCondition)
	waitEvent(ctx, t, crontab, v1alpha1.ReasonStoredVersionsPruned)
	checkStored(ctx, t, crontab, objects)
	expect.NoError(t, readAll(ctx, crontab))
	for _, name := range granted {
		run(ctx, t, "kubectl", "get", "clusterrole/"+name, "clusterrolebinding/"+name)
	}
	made, err := teller.Run(ctx, "kubectl", "get", "clusterroles,clusterrolebindings", "-o", "name", "-l", names.ManagedByLabel+"="+names.ManagedBy)
	if err != nil || made != "" {
		t.Errorf("the manager has made roles: %v\n%s", err, made)
	}
}

// grantCommands matches the commands in the message of a condition.
var grantCommands = regexp.MustCompile(`kubectl create clusterrole [^;]+; kubectl create clusterrolebinding \S+ --clusterrole=\S+ --serviceaccount=[a-z0-9:-]+`)

// grantAsAsked waits until a condition reports a missing right, and runs the commands in it. The
// manager checks again after half a minute, or after any change, such as a label on the policy.
func grantAsAsked(ctx context.Context, t *testing.T, crontab scenarios.CronTab, condition string) {
	t.Helper()
	message := waitMessage(ctx, t, crontab, condition, v1alpha1.ReasonRightsNotGranted, "run: kubectl create clusterrole ")
	commands := grantCommands.FindString(message)
	if commands == "" {
		t.Fatalf("%s has no commands: %s", condition, message)
	}
	run(ctx, t, "bash", "-euc", commands)
	run(ctx, t, "kubectl", "label", "conversionpolicy", crontab.CRD(), "--overwrite", "granted="+condition)
}

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
