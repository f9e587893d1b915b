// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package export_test

import (
	"context"
	"errors"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/cli/export"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion/compile"
	"github.com/conversion-operator/conversion-operator/internal/operator/scheme"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/golden"
)

// sample is the converter of a sample, with a description that looks like a template.
func sample(t *testing.T) export.Converter {
	t.Helper()
	policy, crd := &v1alpha1.ConversionPolicy{}, &apiextensionsv1.CustomResourceDefinition{}
	for file, into := range map[string]any{"2-policy.yaml": policy, "3-crd-both.yaml": crd} {
		text, err := os.ReadFile("../../../config/samples/crontab-hostport/" + file)
		expect.NoError(t, err)
		expect.NoError(t, yaml.UnmarshalStrict(text, into))
	}
	crd.Labels = map[string]string{"app": "crontabs"}
	crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Description = "such as {{ .host }}"
	return export.Converter{CRD: crd, Pods: policy.Spec.Pods(), Ruleset: compile.Compile(crd, policy.Spec.Converter.Declarative).Ruleset,
		Name: "crontabs-converter", Namespace: "crontabs", Image: "example.com/conversion-operator:v1", Certificates: export.ByCertManager}
}

// compressed matches a stored ruleset, whose text depends on the version of Go.
var compressed = regexp.MustCompile(`(\.json\.gz: )H4sI\S+`)

// TestFormats shows the files of each format.
func TestFormats(t *testing.T) {
	for _, name := range []string{"manifests-cert-manager", "kustomize-cert-manager", "helm-cert-manager", "helm-helm"} {
		t.Run(name, func(t *testing.T) {
			format, certificates, _ := strings.Cut(name, "-")
			c, text := sample(t), ""
			switch c.Certificates = certificates; format {
			case export.Manifests:
				c.Previous = map[string][]byte{conversion.StoredName("renamed", "0123"): conversion.Store([]byte("{}"))}
			case export.Kustomize: // a patch changes all but what the operator would restore
				c.Pods = v1alpha1.ConverterPods{Replicas: new(int32(3)), Patches: []v1alpha1.Patch{{Target: &v1alpha1.PatchTarget{Kind: "Deployment"}, Patch: `[
					{op: add, path: /spec/paused, value: true}, {op: add, path: /spec/template/spec/dnsPolicy, value: Default},
					{op: add, path: /spec/template/spec/serviceAccountName, value: admin}]`}}}
			}
			files, err := c.Files(format)
			expect.NoError(t, err)
			for _, file := range slices.Sorted(maps.Keys(files)) {
				text += "# " + file + "\n" + files[file]
			}
			golden.Check(t, compressed.ReplaceAllString(text, "${1}…"), name+".yaml")
		})
	}
}

// TestCheckWaits: a check without a ready pod ends with its context, and says once what it waited for.
func TestCheckWaits(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "crontabs", Name: "starting", Labels: map[string]string{
		"app.kubernetes.io/instance": "crontabs-converter", "app.kubernetes.io/component": "converter"}}}
	late := errors.New("too late")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 100*time.Millisecond, late)
	defer cancel()
	var said []string
	_, err := export.Check{Client: fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(pod).Build(), Name: "crontabs-converter", Namespace: "crontabs", Every: time.Millisecond}.
		Wait(ctx, func(what string) { said = append(said, what) })
	const want = "no converter pod with the labels app.kubernetes.io/component=converter,app.kubernetes.io/instance=crontabs-converter is ready in namespace crontabs"
	if !errors.Is(err, late) || !strings.Contains(err.Error(), want) || len(said) != 1 || said[0] != want {
		t.Errorf("%v, said %q", err, said)
	}
}
