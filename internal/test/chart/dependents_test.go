//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/internal/cli/cmd"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestReleasesOfOldVersions removes a version that the records of two releases name. Helm cannot
// upgrade the one that was not repaired. It upgrades, rolls back and uninstalls the other.
func TestReleasesOfOldVersions(t *testing.T) {
	c := start(t)
	definition := c.define(t)
	old, current := writeChart(t, "v1beta1"), writeChart(t, "v1")
	c.succeeds(t, "install", "repaired", old, "--create-namespace")
	c.dependents(t, 1, "release repaired, revision 1", "--helm")
	c.dependents(t, 1, "done", "--helm", "--repair") // field managers remain
	c.succeeds(t, "install", "broken", old)

	// What a retirement does, and its last step.
	for _, release := range []string{"repaired", "broken"} {
		expect.NoError(t, c.Client.Patch(t.Context(), cronTab(release), client.RawPatch(types.JSONPatchType, []byte(`[{"op":"replace","path":"/metadata/managedFields","value":[{}]}]`))))
	}
	c.removeVersion(t, definition)

	if output, err := c.helm(t, "upgrade", "broken", current); err == nil || !strings.Contains(output, `no matches for kind "CronTab" in version "example.com/v1beta1"`) {
		t.Errorf("Helm upgrades a release whose record names a version that is gone: %v\n%s", err, output)
	}
	c.succeeds(t, "upgrade", "repaired", current, "--force-conflicts")
	c.succeeds(t, "rollback", "repaired", "1", "--force-conflicts")
	c.succeeds(t, "uninstall", "repaired")

	// It is not too late for the other.
	c.dependents(t, 0, "release broken", "--helm", "--repair")
	c.succeeds(t, "upgrade", "broken", current, "--force-conflicts")
	c.succeeds(t, "uninstall", "broken")
}

// define creates a definition with two versions.
func (c *cluster) define(t *testing.T) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	anything := &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}}
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "crontabs.example.com"}, Spec: apiextensionsv1.CustomResourceDefinitionSpec{
		Group: "example.com", Scope: apiextensionsv1.NamespaceScoped, Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "crontabs", Kind: "CronTab"},
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{
			{Name: "v1beta1", Served: true, Schema: anything}, {Name: "v1", Served: true, Storage: true, Schema: anything},
		},
	}}
	expect.NoError(t, c.Client.Create(t.Context(), crd))
	expect.Success(t, "v1beta1 is served", func(ctx context.Context) error { return c.listAt(ctx, "v1beta1") })
	return crd
}

func (c *cluster) listAt(ctx context.Context, version string) error {
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("example.com/" + version)
	list.SetKind("CronTabList")
	return c.Client.List(ctx, list)
}

func (c *cluster) removeVersion(t *testing.T, definition *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	expect.NoError(t, c.Client.Patch(t.Context(), definition, client.RawPatch(types.JSONPatchType, []byte(`[{"op":"remove","path":"/spec/versions/0"}]`))))
	expect.Success(t, "v1beta1 is gone", func(ctx context.Context) error {
		if err := c.listAt(ctx, "v1beta1"); !apierrors.IsNotFound(err) {
			return errors.Join(errors.New("it is served"), err)
		}
		return nil
	})
}

// writeChart writes a chart with one CronTab at a version.
func writeChart(t *testing.T, version string) string {
	t.Helper()
	folder := t.TempDir()
	expect.NoError(t, os.MkdirAll(filepath.Join(folder, "templates"), 0o755))
	expect.NoError(t, os.WriteFile(filepath.Join(folder, "Chart.yaml"), []byte("apiVersion: v2\nname: crontab\nversion: 1.0.0\n"), 0o600))
	expect.NoError(t, os.WriteFile(filepath.Join(folder, "templates", "crontab.yaml"), []byte("apiVersion: example.com/"+version+
		"\nkind: CronTab\nmetadata:\n  name: {{ .Release.Name }}\nspec:\n  from: "+version+"\n"), 0o600))
	return folder
}

func cronTab(name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion("example.com/v1")
	object.SetKind("CronTab")
	object.SetNamespace(namespace)
	object.SetName(name)
	return object
}

// dependents runs the command, and checks its exit code and output.
func (c *cluster) dependents(t *testing.T, code int, want string, args ...string) {
	t.Helper()
	var output bytes.Buffer
	command := cmd.NewRootCommand()
	command.SetOut(&output)
	command.SetErr(&output)
	command.SetArgs(append([]string{"dependents", "crontabs.example.com", "--version=v1beta1", "--kubeconfig", c.kubeconfig, "--qps=1000", "-o=wide"}, args...))
	if err := command.Execute(); cmd.ExitCode(err) != code || !strings.Contains(output.String(), want) {
		t.Errorf("exit code %d, want %d; the output lacks %q:\n%s", cmd.ExitCode(err), code, want, output.String())
	}
}
