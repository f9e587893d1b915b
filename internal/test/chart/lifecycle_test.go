//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/internal/cli/cmd"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/testenv"
)

const (
	name      = "conversions"
	namespace = "elsewhere"
)

// cluster is an API server, and the program helm.
type cluster struct {
	*testenv.Server
	kubeconfig string
	folder     string
}

func start(t *testing.T) *cluster {
	t.Helper()
	ctrl.SetLogger(logr.Discard())
	server := testenv.For(t, testenv.Options{})
	return &cluster{server, server.KubeconfigFile(t), t.TempDir()}
}

// helm runs bin/tools/helm, and returns its output.
func (c *cluster) helm(t *testing.T, args ...string) (string, error) {
	t.Helper()
	program, err := filepath.Abs("../../../bin/tools/helm")
	expect.NoError(t, err)
	command := exec.CommandContext(t.Context(), program, append(args, "--namespace", namespace)...)
	command.Env = append(os.Environ(), "KUBECONFIG="+c.kubeconfig, "HELM_CACHE_HOME="+c.folder, "HELM_CONFIG_HOME="+c.folder, "HELM_DATA_HOME="+c.folder)
	output, err := command.CombinedOutput()
	t.Logf("helm %s: %v\n%s", strings.Join(args, " "), err, output)
	return string(output), err
}

// succeeds runs helm, and fails the test if helm fails.
func (c *cluster) succeeds(t *testing.T, args ...string) string {
	t.Helper()
	output, err := c.helm(t, args...)
	if err != nil {
		t.Fatalf("helm %s: %v\n%s", strings.Join(args, " "), err, output)
	}
	return output
}

func (c *cluster) manifest(t *testing.T) objects {
	t.Helper()
	return decode(t, c.succeeds(t, "get", "manifest", name))
}

// has returns the objects that the API server has, and their versions.
func (c *cluster) has(t *testing.T, all objects) map[string]string {
	t.Helper()
	found := map[string]string{}
	for name, object := range all {
		err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(&object), &object)
		if !apierrors.IsNotFound(err) {
			expect.NoError(t, err)
			found[name] = object.GetResourceVersion()
		}
	}
	return found
}

// deployed returns the objects of the release, which have to be there.
func (c *cluster) deployed(t *testing.T) map[string]string {
	t.Helper()
	manifest := c.manifest(t)
	found := c.has(t, manifest)
	if diff := cmp.Diff(keys(manifest), keys(found)); diff != "" {
		t.Errorf("objects (-release +cluster):\n%s", diff)
	}
	return found
}

func keys[V any](of map[string]V) []string { return slices.Sorted(maps.Keys(of)) }

func (c *cluster) replicas(t *testing.T) int32 {
	t.Helper()
	found := &appsv1.Deployment{}
	expect.NoError(t, c.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "conversion-operator"}, found))
	return *found.Spec.Replicas
}

// TestLifecycle installs, upgrades, rolls back and uninstalls the chart.
func TestLifecycle(t *testing.T) {
	c := start(t)
	c.checkNotes(t)
	first := c.deployed(t)
	c.succeeds(t, "upgrade", name, folder)
	if diff := cmp.Diff(first, c.deployed(t)); diff != "" {
		t.Errorf("an upgrade to the same changed something (-before +after):\n%s", diff)
	}

	const guard, grants = "ValidatingAdmissionPolicy  uninstall-guard.conversion-operator.io", "ClusterRole  conversion-operator-grants"
	rights := objects{grants: c.manifest(t)[grants]}
	c.succeeds(t, "upgrade", name, folder, "--set", "uninstallGuard.enabled=true,replicas=3,rights=granted")
	if changed := c.deployed(t); changed[guard] == "" || c.replicas(t) != 3 || len(c.has(t, rights)) > 0 {
		t.Errorf("after the upgrade there are %d replicas, %v and %v", c.replicas(t), changed, c.has(t, rights))
	}
	c.succeeds(t, "rollback", name, "1")
	if diff := cmp.Diff(keys(first), keys(c.deployed(t))); diff != "" || c.replicas(t) != 2 {
		t.Errorf("after the rollback there are %d replicas, and (-before +after):\n%s", c.replicas(t), diff)
	}
	if said, err := c.helm(t, "install", "second", folder); err == nil || !strings.Contains(said, "invalid ownership metadata") {
		t.Errorf("a second operator is installed: %v\n%s", err, said)
	}

	c.uninstall(t, "CustomResourceDefinition ", "ServiceAccount elsewhere conversion-operator-converter")
	c.succeeds(t, "install", name, folder, "--set", "crds.keep=false")
	if diff := cmp.Diff(keys(first), keys(c.deployed(t))); diff != "" {
		t.Errorf("installed again (-before +after):\n%s", diff)
	}
	c.uninstall(t, "ServiceAccount elsewhere conversion-operator-converter")
}

// checkNotes installs the chart. The notes say which labels of config/default the namespace lacks.
func (c *cluster) checkNotes(t *testing.T) {
	t.Helper()
	notes := c.succeeds(t, "install", name, folder, "--create-namespace")
	found := &corev1.Namespace{}
	expect.NoError(t, c.Client.Get(t.Context(), client.ObjectKey{Name: namespace}, found))
	for _, mode := range []string{"enforce", "audit", "warn"} {
		label := "pod-security.kubernetes.io/" + mode
		if want := "kubectl label namespace elsewhere --overwrite " + label + "='restricted'"; !strings.Contains(notes, want) {
			t.Errorf("the notes do not say: %s", want)
		}
		found.Labels[label] = "restricted"
	}
	expect.NoError(t, c.Client.Update(t.Context(), found))
	if notes := c.succeeds(t, "upgrade", name, folder); strings.Contains(notes, "kubectl label") {
		t.Error("the notes want labels that the namespace has")
	}
}

// uninstall runs helm uninstall, which leaves nothing but some objects.
func (c *cluster) uninstall(t *testing.T, stay ...string) {
	t.Helper()
	manifest := c.manifest(t)
	ended := c.runHooks(t, c.runPod)
	c.succeeds(t, "uninstall", name, "--wait")
	ended()
	for left := range c.has(t, manifest) {
		if !slices.ContainsFunc(stay, func(each string) bool { return strings.HasPrefix(left, each) }) {
			t.Errorf("after the uninstallation there is %s", left)
		}
	}
}

// runHooks acts as Job controller and kubelet for the Jobs of hooks: it calls run for the pod of each, which succeeds
// unless that returns an error. The caller ends that.
func (c *cluster) runHooks(t *testing.T, run func(context.Context, corev1.PodSpec) error) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	jobs, err := c.Client.Watch(ctx, &batchv1.JobList{}, client.InNamespace(namespace))
	expect.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for event := range jobs.ResultChan() {
			if job, is := event.Object.(*batchv1.Job); is && job.Status.StartTime == nil && job.DeletionTimestamp == nil {
				if err := c.runJob(ctx, job, run); err != nil && !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			}
		}
	}()
	return func() {
		cancel()
		jobs.Stop()
		<-done
	}
}

func (c *cluster) runJob(ctx context.Context, job *batchv1.Job, run func(context.Context, corev1.PodSpec) error) error {
	now := metav1.Now()
	job.Status = batchv1.JobStatus{StartTime: &now, CompletionTime: &now, Succeeded: 1}
	conditions := []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobComplete}
	if run(ctx, job.Spec.Template.Spec) != nil {
		job.Status = batchv1.JobStatus{StartTime: &now, Failed: 1}
		conditions = []batchv1.JobConditionType{batchv1.JobFailureTarget, batchv1.JobFailed}
	}
	for _, each := range conditions {
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{Type: each, Status: corev1.ConditionTrue, LastTransitionTime: now, Reason: "Test"})
	}
	return c.Client.Status().Update(ctx, job)
}

// runPod runs the command of a pod, as its ServiceAccount.
func (c *cluster) runPod(ctx context.Context, pod corev1.PodSpec) error {
	root := cmd.NewRootCommand()
	root.SetErr(io.Discard)
	root.SetOut(io.Discard)
	root.SetArgs(append(slices.Clone(pod.Containers[0].Args), "--kubeconfig="+c.kubeconfig, "--as=system:serviceaccount:"+namespace+":"+pod.ServiceAccountName))
	return root.ExecuteContext(ctx)
}

// users need the operator, except the last. No manager runs here, which would add finalizers.
var users = `
apiVersion: conversion-operator.io/v1alpha1
kind: ConversionPolicy
metadata: {name: crontabs.example.com}
spec: {converter: {type: None}}
---
apiVersion: conversion-operator.io/v1alpha1
kind: ConverterFleet
metadata: {name: shared}
---
` + convertsIn("abandoned", "elsewhere") + "\n---\n" + convertsIn("others", "another")

// convertsIn is a CustomResourceDefinition that converts through a Service in a namespace.
func convertsIn(plural, namespace string) string {
	return `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ` + plural + `.example.com}
spec:
  group: example.com
  scope: Cluster
  names: {plural: ` + plural + `, kind: ` + strings.ToUpper(plural[:1]) + plural[1:] + `}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
  conversion:
    strategy: Webhook
    webhook: {conversionReviewVersions: [v1], clientConfig: {service: {namespace: ` + namespace + `, name: converter}}}
`
}

// TestUninstallIsRefused: while something needs the operator, helm uninstall fails, and changes nothing.
// A rollback to the same revision makes the release usable again. Without hooks, policies stay.
func TestUninstallIsRefused(t *testing.T) {
	c := start(t)
	c.succeeds(t, "install", name, folder, "--create-namespace")
	rendered, err := render(namespace, nil)
	expect.NoError(t, err)
	test, check := hookPods(t, rendered)
	expect.NoError(t, c.runPod(t.Context(), test))
	expect.NoError(t, c.runPod(t.Context(), check))

	for _, each := range decode(t, users) {
		expect.NoError(t, c.Client.Create(t.Context(), &each))
	}
	const want = `the operator cannot be uninstalled yet: delete the policies, then the fleets, and wait until they are gone:
  ConversionPolicy crontabs.example.com
  ConverterFleet shared
  CustomResourceDefinition abandoned.example.com: it converts through a Service in elsewhere, and its objects would be unreadable without that`
	if err := c.runPod(t.Context(), check); cmd.ExitCode(err) != 1 || err.Error() != want {
		t.Errorf("exit code %d, error %v, want %s", cmd.ExitCode(err), err, want)
	}
	before := c.deployed(t)
	ended := c.runHooks(t, c.runPod)
	if said, err := c.helm(t, "uninstall", name); err == nil || !strings.Contains(said, "conversion-operator-uninstall-check") {
		t.Errorf("the uninstallation is not refused: %v\n%s", err, said)
	}
	ended()
	if diff := cmp.Diff(before, c.deployed(t)); diff != "" {
		t.Errorf("a refused uninstallation changed something (-before +after):\n%s", diff)
	}
	c.succeeds(t, "rollback", name, "1")
	c.succeeds(t, "upgrade", name, folder, "--set", "replicas=3")

	c.succeeds(t, "uninstall", name, "--no-hooks")
	c.succeeds(t, "install", name, folder)
	for _, each := range decode(t, users) {
		expect.NoError(t, c.Client.Delete(t.Context(), &each))
		expect.Eventually(t, each.GetKind()+" "+each.GetName()+" is gone", func() (bool, string) {
			err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(&each), &each)
			return apierrors.IsNotFound(err), fmt.Sprint(err)
		})
	}
	c.uninstall(t, "CustomResourceDefinition ", "ServiceAccount elsewhere conversion-operator-converter")
}
