//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

const config = "../../../config"

// kubectl runs the tests' own kubectl against their API server.
type kubectl struct {
	program     string
	environment []string
}

// start starts an API server on which nothing is installed.
func start(t *testing.T) kubectl {
	t.Helper()
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	if assets == "" {
		t.Fatal("KUBEBUILDER_ASSETS is not set: run make integration")
	}
	ctrl.SetLogger(logr.Discard())
	server := &envtest.Environment{}
	if _, err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	dir := t.TempDir()
	kubeconfig := filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(kubeconfig, server.KubeConfig, 0o600); err != nil {
		t.Fatal(err)
	}
	return kubectl{program: filepath.Join(assets, "kubectl"),
		environment: append(os.Environ(), "KUBECONFIG="+kubeconfig, "KUBECACHEDIR="+filepath.Join(dir, "cache"))}
}

func (k kubectl) run(t *testing.T, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), k.program, args...)
	command.Env = k.environment
	output, err := command.Output()
	if err != nil {
		stderr := ""
		if failed, ok := err.(*exec.ExitError); ok { //nolint:errorlint // Output gives it as it is
			stderr = string(failed.Stderr)
		}
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, stderr)
	}
	return string(output)
}

// objects are what a kustomization names, as the server has them.
func (k kubectl) objects(t *testing.T, kustomization string) []unstructured.Unstructured {
	t.Helper()
	list := struct{ Items []unstructured.Unstructured }{}
	if err := json.Unmarshal([]byte(k.run(t, "get", "-k", kustomization, "-o", "json")), &list); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// versions are the resourceVersions of what a kustomization names.
func (k kubectl) versions(t *testing.T, kustomization string) map[string]string {
	t.Helper()
	result := map[string]string{}
	for _, object := range k.objects(t, kustomization) {
		result[object.GetKind()+" "+object.GetNamespace()+"/"+object.GetName()] = object.GetResourceVersion()
	}
	return result
}

// TestApply applies config/default in every way, one after the other, as people do
// who change from one tool to another. Each second time changes nothing, and no way
// is refused because of the one before.
func TestApply(t *testing.T) {
	kubectl, kustomization := start(t), config+"/default"
	manifest := filepath.Join(t.TempDir(), "install.yaml")
	if err := os.WriteFile(manifest, []byte(kubectl.run(t, "kustomize", kustomization)), 0o600); err != nil {
		t.Fatal(err)
	}
	ways := [][]string{
		{"apply", "-k", kustomization},
		{"apply", "-f", manifest},
		{"apply", "--server-side", "-k", kustomization},
		{"apply", "--server-side", "-f", manifest},
		{"apply", "-k", kustomization},
		{"apply", "--server-side", "-f", manifest},
	}
	for i, way := range ways {
		name := fmt.Sprintf("%d: %s", i+1, strings.ReplaceAll(strings.Join(way[:len(way)-1], " "), "/", "-"))
		kubectl.run(t, way...)
		kubectl.run(t, "wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
		before := kubectl.versions(t, kustomization)
		kubectl.run(t, way...)
		if diff := cmp.Diff(before, kubectl.versions(t, kustomization)); diff != "" || len(before) == 0 {
			t.Errorf("%s: the second time it changed something (-before +after):\n%s", name, diff)
		}
	}
	checkRemoval(t, kubectl, kustomization)
}

// checkRemoval deletes what is installed. The namespace goes last, and by a
// controller that does not run here: it is on its way.
func checkRemoval(t *testing.T, kubectl kubectl, kustomization string) {
	t.Helper()
	kubectl.run(t, "delete", "-k", kustomization, "--wait=false")
	kubectl.run(t, "wait", "--for=delete", "crd", "--all", "--timeout=30s")
	left := kubectl.run(t, "get", "-k", kustomization, "--ignore-not-found", "-o",
		`jsonpath={range .items[*]}{.kind} {.status.phase}{"\n"}{end}{.kind} {.status.phase}`)
	if got := strings.TrimSpace(strings.Replace(left, "List", "", 1)); got != "Namespace Terminating" {
		t.Errorf("after the removal there is:\n%s", left)
	}
}

// TestApplyElsewhere: a kustomization with a namespace, a prefix and an image of its
// own moves all that names them, and components on top of it follow.
func TestApplyElsewhere(t *testing.T) {
	kubectl, dir := start(t), t.TempDir()
	below, above := filepath.Join(dir, "below"), filepath.Join(dir, "above")
	write(t, below, `
namespace: elsewhere
namePrefix: my-
images: [{name: localhost/conversion-operator, newName: registry.example.com/operator, newTag: v1}]
resources: [`+from(t, below, "default")+`]`)
	write(t, above, `
resources: [../below]
components: [`+from(t, above, "components/guard")+`, `+from(t, above, "components/granted-rights")+`]`)
	for _, kustomization := range []string{below, above} {
		kubectl.run(t, "apply", "--server-side", "-k", kustomization)
	}
	var image, account, level string
	for _, object := range kubectl.objects(t, above) {
		text, err := object.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		namespace := object.GetNamespace()
		stripped := strings.ReplaceAll(string(text), "conversion-system.svc", "")
		if strings.Contains(stripped, "conversion-system") || namespace != "" && namespace != "elsewhere" {
			t.Errorf("%s %s/%s still names conversion-system:\n%s", object.GetKind(), namespace, object.GetName(), text)
		}
		if object.GetKind() == "Deployment" {
			containers, _, _ := unstructured.NestedSlice(object.Object, "spec", "template", "spec", "containers")
			image, account, level = environment(containers)
		}
	}
	want := []string{"registry.example.com/operator:v1", "my-conversion-operator-converter", "my-conversion-migrations"}
	if diff := cmp.Diff(want, []string{image, account, level}); diff != "" {
		t.Errorf("what the manager is told (-want +got):\n%s", diff)
	}
	kubectl.run(t, "-n", "elsewhere", "get", "serviceaccount", account)
	kubectl.run(t, "get", "prioritylevelconfiguration", level)
}

// environment is what the manager is told of its image and of two objects.
func environment(containers []any) (image, account, level string) {
	for _, container := range containers {
		variables, _, _ := unstructured.NestedSlice(container.(map[string]any), "env") //nolint:forcetypeassert // a container
		for _, each := range variables {
			variable := each.(map[string]any) //nolint:forcetypeassert // a variable
			value, _ := variable["value"].(string)
			switch variable["name"] {
			case "CONVERSION_OPERATOR_IMAGE":
				image = value
			case "CONVERTER_SERVICE_ACCOUNT":
				account = value
			case "MIGRATION_PRIORITY_LEVEL":
				level = value
			}
		}
	}
	return image, account, level
}

// TestOverlays: each overlay of config/ that needs nothing but Kubernetes can be applied.
func TestOverlays(t *testing.T) {
	kubectl := start(t)
	kubectl.run(t, "apply", "--server-side", "-k", config+"/default")
	for _, overlay := range []string{"single-replica", "openshift", "olm"} {
		kubectl.run(t, "apply", "--server-side", "--dry-run=server", "-k", config+"/overlays/"+overlay)
	}
	if text := kubectl.run(t, "kustomize", config+"/overlays/cert-manager"); strings.Count(text, "kind: Issuer\n") != 3 {
		t.Errorf("the overlay for cert-manager names an Issuer %d times", strings.Count(text, "kind: Issuer\n"))
	}
}

func write(t *testing.T, dir, kustomization string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(kustomization), 0o600); err != nil {
		t.Fatal(err)
	}
}

// from is the path of a folder of config/ from a directory: kustomize takes no absolute one.
func from(t *testing.T, dir, folder string) string {
	t.Helper()
	target, err := filepath.Abs(filepath.Join(config, folder))
	if err != nil {
		t.Fatal(err)
	}
	relative, err := filepath.Rel(dir, target)
	if err != nil {
		t.Fatal(err)
	}
	return relative
}
