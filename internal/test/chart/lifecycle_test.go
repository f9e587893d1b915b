//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/cmd"
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
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	err = command.Run()
	t.Logf("helm %s: %v\n%s", strings.Join(args, " "), err, output.String())
	return output.String(), err
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

// has returns the objects of a rendered manifest that the API server has, and their versions.
func (c *cluster) has(t *testing.T, manifest string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for name, object := range decode(t, manifest) {
		err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(&object), &object)
		if !apierrors.IsNotFound(err) {
			expect.NoError(t, err)
			found[name] = object.GetResourceVersion()
		}
	}
	return found
}

// deployed returns the objects of the release that the API server has.
func (c *cluster) deployed(t *testing.T) map[string]string {
	t.Helper()
	return c.has(t, c.succeeds(t, "get", "manifest", name))
}

// TestLifecycle installs, upgrades, rolls back and uninstalls the chart.
func TestLifecycle(t *testing.T) {
	c := start(t)
	notes := c.succeeds(t, "install", name, folder, "--create-namespace")
	for label := range podSecurity {
		if want := "kubectl label namespace elsewhere --overwrite " + label + "='restricted'"; !strings.Contains(notes, want) {
			t.Errorf("the notes do not say: %s", want)
		}
	}
	first := c.deployed(t)
	checkComplete(t, c, first)

	c.labelNamespace(t)
	if notes := c.succeeds(t, "upgrade", name, folder); strings.Contains(notes, "kubectl label") {
		t.Error("the notes want labels that the namespace has")
	}
	if diff := cmp.Diff(first, c.deployed(t)); diff != "" {
		t.Errorf("an upgrade to the same changed something (-before +after):\n%s", diff)
	}

	const guard = "ValidatingAdmissionPolicy  uninstall-guard.conversion-operator.io"
	c.succeeds(t, "upgrade", name, folder, "--set", "uninstallGuard.enabled=true,replicas=3,rights=granted")
	changed := c.deployed(t)
	if checkComplete(t, c, changed); changed[guard] == "" || c.replicas(t) != 3 {
		t.Errorf("after the upgrade there are %d replicas, and %v", c.replicas(t), changed)
	}
	if left := c.has(t, clusterRole("conversion-operator-grants")); len(left) > 0 {
		t.Errorf("with rights=granted there is still %v", left)
	}

	c.succeeds(t, "rollback", name, "1")
	if again := c.deployed(t); again[guard] != "" || c.replicas(t) != 2 || !cmp.Equal(keys(first), keys(again)) {
		t.Errorf("after the rollback there are %d replicas, and (-before +after):\n%s", c.replicas(t), cmp.Diff(keys(first), keys(again)))
	}

	if said, err := c.helm(t, "install", "second", folder); err == nil || !strings.Contains(said, "invalid ownership metadata") {
		t.Errorf("a second operator is installed: %v\n%s", err, said)
	}
	manifest := c.succeeds(t, "get", "manifest", name)
	c.uninstall(t)
	c.checkRemoved(t, manifest)
	c.succeeds(t, "install", name, folder, "--set", "crds.keep=false")
	if diff := cmp.Diff(keys(first), keys(c.deployed(t))); diff != "" {
		t.Errorf("installed again (-before +after):\n%s", diff)
	}
	c.uninstall(t)
	if left := c.has(t, manifest); len(left) > 1 {
		t.Errorf("after the uninstallation with crds.keep=false there is %v", left)
	}
}

// checkRemoved checks that nothing remains of a release except the kinds, and the account of converter
// pods, which has no rights.
func (c *cluster) checkRemoved(t *testing.T, manifest string) {
	t.Helper()
	for left := range c.has(t, manifest) {
		if !strings.HasPrefix(left, "CustomResourceDefinition ") && left != "ServiceAccount elsewhere conversion-operator-converter" {
			t.Errorf("after the uninstallation there is %s", left)
		}
	}
}

// podSecurity are the labels of the namespace in config/default.
var podSecurity = map[string]string{
	"pod-security.kubernetes.io/enforce": "restricted", "pod-security.kubernetes.io/audit": "restricted", "pod-security.kubernetes.io/warn": "restricted",
}

func (c *cluster) labelNamespace(t *testing.T) {
	t.Helper()
	found := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	expect.NoError(t, c.Client.Get(t.Context(), client.ObjectKeyFromObject(found), found))
	maps.Copy(found.Labels, podSecurity)
	expect.NoError(t, c.Client.Update(t.Context(), found))
}

func (c *cluster) replicas(t *testing.T) int32 {
	t.Helper()
	found := &appsv1.Deployment{}
	expect.NoError(t, c.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "conversion-operator"}, found))
	return *found.Spec.Replicas
}

// checkComplete checks that the API server has every object of the release.
func checkComplete(t *testing.T, c *cluster, has map[string]string) {
	t.Helper()
	if diff := cmp.Diff(keys(decode(t, c.succeeds(t, "get", "manifest", name))), keys(has)); diff != "" {
		t.Errorf("objects (-release +cluster):\n%s", diff)
	}
}

func keys[V any](of map[string]V) []string {
	result := make([]string, 0, len(of))
	for key := range of {
		result = append(result, key)
	}
	slices.Sort(result)
	return result
}

func clusterRole(name string) string {
	return "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: " + name + "}\n"
}

// uninstall runs helm uninstall, which has to succeed.
func (c *cluster) uninstall(t *testing.T) {
	t.Helper()
	ended := c.runHooks(t)
	c.succeeds(t, "uninstall", name, "--wait")
	ended()
}

// runHooks acts as Job controller and kubelet for the Job before an uninstallation: it runs the
// command of its container, as the ServiceAccount of its pod. The caller ends that.
func (c *cluster) runHooks(t *testing.T) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	jobs, err := c.Client.Watch(ctx, &batchv1.JobList{}, client.InNamespace(namespace))
	expect.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for event := range jobs.ResultChan() {
			if job, is := event.Object.(*batchv1.Job); is && job.Status.StartTime == nil && job.DeletionTimestamp == nil {
				if err := c.runJob(ctx, job); err != nil && !errors.Is(err, context.Canceled) {
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

func (c *cluster) runJob(ctx context.Context, job *batchv1.Job) error {
	failed := c.runPod(ctx, &job.Spec.Template.Spec)
	now := metav1.NewTime(time.Now())
	conditions := []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobComplete}
	job.Status.StartTime, job.Status.CompletionTime, job.Status.Succeeded = &now, &now, 1
	if failed != nil {
		conditions = []batchv1.JobConditionType{batchv1.JobFailureTarget, batchv1.JobFailed}
		job.Status.CompletionTime, job.Status.Succeeded, job.Status.Failed = nil, 0, 1
	}
	for _, each := range conditions {
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{
			Type: each, Status: corev1.ConditionTrue, LastTransitionTime: now, Reason: "Test"})
	}
	return c.Client.Status().Update(ctx, job)
}

// runPod runs the command of a pod, as its ServiceAccount.
func (c *cluster) runPod(ctx context.Context, pod *corev1.PodSpec) error {
	root := cmd.NewRootCommand()
	root.SetErr(io.Discard)
	root.SetOut(io.Discard)
	root.SetArgs(append(slices.Clone(pod.Containers[0].Args), "--kubeconfig="+c.kubeconfig, "--as=system:serviceaccount:"+namespace+":"+pod.ServiceAccountName))
	return root.ExecuteContext(ctx)
}

// TestHooks: the commands of the hooks have the rights that they need, and the one before an
// uninstallation names everything that needs the operator.
func TestHooks(t *testing.T) {
	c := start(t)
	c.succeeds(t, "install", name, folder, "--create-namespace")
	rendered, err := installed{release: name, namespace: namespace}.render()
	expect.NoError(t, err)
	var check, test *corev1.PodSpec
	for _, hook := range rendered.Hooks {
		for _, object := range decode(t, hook.Manifest) {
			if object.GetKind() == "Job" {
				job := convert[batchv1.Job](t, object)
				check = &job.Spec.Template.Spec
			} else {
				pod := convert[corev1.Pod](t, object)
				test = &pod.Spec
			}
		}
	}
	expect.NoError(t, c.runPod(t.Context(), test))
	expect.NoError(t, c.runPod(t.Context(), check))

	converting := definition("abandoned.example.com", namespace)
	expect.NoError(t, c.Client.Create(t.Context(), converting))
	expect.NoError(t, c.Client.Create(t.Context(), definition("others.example.com", "another")))
	c.createPolicy(t)
	fleet := &v1alpha1.ConverterFleet{}
	fleet.SetName("shared")
	expect.NoError(t, c.Client.Create(t.Context(), fleet))
	const want = `the operator cannot be uninstalled yet: delete the policies, then the fleets, and wait until they are gone:
  ConversionPolicy crontabs.example.com
  ConverterFleet shared
  CustomResourceDefinition abandoned.example.com: it converts through a Service in elsewhere, and its objects would be unreadable without that`
	if err := c.runPod(t.Context(), check); cmd.ExitCode(err) != 1 || err.Error() != want {
		t.Errorf("exit code %d, error %v, want %s", cmd.ExitCode(err), err, want)
	}
}

// definition returns a CustomResourceDefinition that converts through a Service in a namespace.
func definition(name, namespace string) *apiextensionsv1.CustomResourceDefinition {
	plural, group, _ := strings.Cut(name, ".")
	version := apiextensionsv1.CustomResourceDefinitionVersion{Name: "v1", Served: true, Storage: true,
		Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}}}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.SetName(name)
	crd.Spec.Group, crd.Spec.Scope, crd.Spec.Versions = group, apiextensionsv1.ClusterScoped, []apiextensionsv1.CustomResourceDefinitionVersion{version}
	crd.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Singular: plural[:len(plural)-1], Kind: strings.ToUpper(plural[:1]) + plural[1:]}
	crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter, Webhook: &apiextensionsv1.WebhookConversion{
		ConversionReviewVersions: []string{"v1"},
		ClientConfig:             &apiextensionsv1.WebhookClientConfig{Service: &apiextensionsv1.ServiceReference{Namespace: namespace, Name: "converter"}},
	}}
	return crd
}

// TestUninstallIsRefused: while there is a policy or a fleet, helm uninstall fails, and changes nothing.
// A rollback to the same revision makes the release usable again.
func TestUninstallIsRefused(t *testing.T) {
	c := start(t)
	c.succeeds(t, "install", name, folder, "--create-namespace")
	policy := c.createPolicy(t)
	before := c.deployed(t)

	ended := c.runHooks(t)
	if said, err := c.helm(t, "uninstall", name); err == nil || !strings.Contains(said, "conversion-operator-uninstall-check") {
		t.Errorf("the uninstallation is not refused: %v\n%s", err, said)
	}
	ended()
	if diff := cmp.Diff(before, c.deployed(t)); diff != "" {
		t.Errorf("a refused uninstallation changed something (-before +after):\n%s", diff)
	}
	c.succeeds(t, "rollback", name, "1")
	c.succeeds(t, "upgrade", name, folder, "--set", "replicas=3")

	expect.NoError(t, c.Client.Delete(t.Context(), policy))
	manifest := c.succeeds(t, "get", "manifest", name)
	c.uninstall(t)
	c.checkRemoved(t, manifest)
}

// createPolicy creates a policy that only cleans up. No manager runs here.
func (c *cluster) createPolicy(t *testing.T) *v1alpha1.ConversionPolicy {
	t.Helper()
	policy := &v1alpha1.ConversionPolicy{}
	policy.SetName("crontabs.example.com")
	policy.Spec.Converter.None = &v1alpha1.NoneConverter{}
	expect.NoError(t, c.Client.Create(t.Context(), policy))
	return policy
}

// TestPoliciesStay: without hooks, an uninstallation leaves the policies and their kinds.
func TestPoliciesStay(t *testing.T) {
	c := start(t)
	c.succeeds(t, "install", name, folder, "--create-namespace")
	policy := c.createPolicy(t)
	c.succeeds(t, "uninstall", name, "--no-hooks")
	expect.NoError(t, c.Client.Get(t.Context(), client.ObjectKeyFromObject(policy), policy))
	c.succeeds(t, "install", name, folder)
	expect.NoError(t, c.Client.Get(t.Context(), client.ObjectKeyFromObject(policy), policy))
}
