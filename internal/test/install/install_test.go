//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
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
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/conversion-operator/conversion-operator/internal/test/docs"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/testenv"
)

const (
	root   = "../../.."
	config = root + "/config"
)

// kubectl runs the kubectl of the test environment against the test's API server.
type kubectl struct {
	program        string
	environment    []string
	kubeconfig     *rest.Config
	kubeconfigFile string
}

// start starts an empty API server.
func start(t *testing.T) kubectl {
	t.Helper()
	ctrl.SetLogger(logr.Discard())
	server := testenv.For(t, testenv.Options{})
	file := server.KubeconfigFile(t)
	return kubectl{program: filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kubectl"), kubeconfig: server.Kubeconfig, kubeconfigFile: file,
		environment: append(os.Environ(), "KUBECONFIG="+file, "KUBECACHEDIR="+t.TempDir())}
}

func (k kubectl) run(t *testing.T, args ...string) string {
	t.Helper()
	output, err := k.try(t, args...)
	expect.NoError(t, err)
	return output
}

// try returns what kubectl printed, and an error with what it printed to stderr.
func (k kubectl) try(t *testing.T, args ...string) (string, error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), k.program, args...)
	command.Env = k.environment
	output, err := command.Output()
	if err != nil {
		stderr := ""
		if failed, ok := err.(*exec.ExitError); ok { //nolint:errorlint // Output gives it unchanged
			stderr = string(failed.Stderr)
		}
		return string(output), fmt.Errorf("kubectl %s: %w\n%s", strings.Join(args, " "), err, stderr)
	}
	return string(output), nil
}

// versions returns the resourceVersions of the objects of a kustomization, as the server stores them.
func (k kubectl) versions(t *testing.T, kustomization string) map[string]string {
	t.Helper()
	list, result := struct{ Items []unstructured.Unstructured }{}, map[string]string{}
	expect.NoError(t, json.Unmarshal([]byte(k.run(t, "get", "-k", kustomization, "-o", "json")), &list))
	for _, object := range list.Items {
		result[object.GetKind()+" "+object.GetNamespace()+"/"+object.GetName()] = object.GetResourceVersion()
	}
	return result
}

// TestApply applies config/default with every documented command and some others, one after the
// other, like users who switch tools. Applying twice changes nothing, and no command conflicts with
// the previous one.
func TestApply(t *testing.T) {
	kubectl, kustomization := start(t), config+"/default"
	var ways []string
	for _, page := range scene(t, "installing") {
		for _, block := range page.Blocks {
			for _, command := range block.Commands() {
				ways = append(ways, command.Text)
			}
		}
	}
	ways = append(ways,
		"kubectl apply --server-side -f bin/install.yaml", "kubectl apply -k config/default", "kubectl apply --server-side -f bin/install.yaml")
	for i, way := range ways {
		kubectl.play(t, page(way))
		kubectl.play(t, page(docs.Established("crd --all")))
		before := kubectl.versions(t, kustomization)
		kubectl.play(t, page(way))
		if diff := cmp.Diff(before, kubectl.versions(t, kustomization)); diff != "" || len(before) == 0 {
			t.Errorf("%d: %sthe second time it changed something (-before +after):\n%s", i+1, way, diff)
		}
	}
	checkRemoval(t, kubectl, kustomization)
}

// scene returns the parts of a scene of the documentation.
func scene(t *testing.T, name string) []*docs.Page {
	t.Helper()
	parts, err := docs.Scene(root, name)
	expect.NoError(t, err)
	return parts
}

// page returns a page with one command to run.
func page(command string) *docs.Page {
	return &docs.Page{Blocks: []docs.Block{{Language: "sh", Info: []string{"play"}, Text: strings.TrimSpace(command) + "\n"}}}
}

// play runs the commands of pages at the root of the checkout.
func (k kubectl) play(t *testing.T, parts ...*docs.Page) {
	t.Helper()
	player := &docs.Player{Folder: root, Out: t.Output(),
		Environment: append(k.environment, "PATH="+filepath.Dir(k.program)+":"+os.Getenv("PATH"))}
	for _, part := range parts {
		expect.NoError(t, player.Play(t.Context(), part))
	}
}

// checkRemoval uninstalls as documented, and fails if an object remains.
func checkRemoval(t *testing.T, kubectl kubectl, kustomization string) {
	t.Helper()
	kubectl.emptyNamespaces(t)
	kubectl.play(t, scene(t, "removing")...)
	expect.Equal(t, "left after the removal", "", kubectl.run(t, "get", "-k", kustomization, "--ignore-not-found", "-o", "name"))
}

// emptyNamespaces starts Kubernetes' controller that deletes the content of namespaces.
func (k kubectl) emptyNamespaces(t *testing.T) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	controller := exec.CommandContext(ctx, filepath.Join(filepath.Dir(k.program), "kube-controller-manager"), "--kubeconfig="+k.kubeconfigFile,
		"--controllers=namespace-controller", "--leader-elect=false", "--secure-port=0")
	expect.NoError(t, controller.Start())
	t.Cleanup(func() {
		stop()
		_ = controller.Wait() // it was killed
	})
}

// TestOverlays: each overlay of config/ that depends on Kubernetes alone can be applied.
func TestOverlays(t *testing.T) {
	kubectl := start(t)
	kubectl.run(t, "apply", "--server-side", "-k", config+"/default")
	for _, overlay := range []string{"single-replica", "openshift", "olm"} {
		kubectl.run(t, "apply", "--server-side", "--dry-run=server", "-k", config+"/overlays/"+overlay)
	}
	text := kubectl.run(t, "kustomize", config+"/overlays/cert-manager")
	expect.Equal(t, "Issuers that the overlay for cert-manager names", 3, strings.Count(text, "kind: Issuer\n"))
}
