//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/controllers"
	"github.com/conversion-operator/conversion-operator/internal/operator/plan/names"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// TestEveryRefusal: for each validation of the operator's own admission policies, there is a write that it
// refuses, and that the manager recognizes as such. The test is not parallel, as others change spec.conversion.
func TestEveryRefusal(t *testing.T) {
	active := activate(t, "refusals.confined.example.com", shared)
	defer install(t, "guard/conversion.yaml")()
	aggregate(t, "user.refusals.example.com")
	left := slices.DeleteFunc(validations(t, "rbac/confinement.yaml", "guard/conversion.yaml"), func(text string) bool {
		return strings.Contains(text, "only server certificates") // TestCertManager installs that kind
	})
	for name, write := range refusedWrites(t, asManager(t), active) {
		t.Run(name, func(t *testing.T) {
			var refusal string
			expect.Eventually(t, "it is refused", func() (bool, string) {
				err := write(t.Context())
				refusal = fmt.Sprint(err)
				return controllers.RefusedByOwnAdmission(err), refusal
			})
			left = slices.DeleteFunc(left, func(text string) bool { return strings.Contains(refusal, text) })
		})
	}
	if len(left) > 0 {
		t.Errorf("no write above is refused with %q", left)
	}
}

// refusedWrites are dry runs. All but the last are by the manager.
func refusedWrites(t *testing.T, manager client.Client, active *apiextensionsv1.CustomResourceDefinition) map[string]func(context.Context) error {
	t.Helper()
	_, writes := confinedRequests(t, manager, "refusals")
	maps.Copy(writes, map[string]func(context.Context) error{
		"stored versions":              change("replace", "/status/storedVersions", []string{"v1beta1", "v1"}).write(manager, active.Name, true),
		"its own kind":                 change("replace", "/spec/conversion", active.Spec.Conversion).write(manager, "conversionpolicies.conversion-operator.io", false),
		"a deletion":                   func(ctx context.Context) error { return manager.Delete(ctx, active.DeepCopy(), client.DryRunAll) },
		"a kind of another API server": creating(manager, about("users.user.refusals.example.com")),
		"an account of others":         creating(manager, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "another"}}),
		"its own account": creating(manager, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "conversion-operator",
			Labels: map[string]string{names.ManagedByLabel: names.ManagedBy}}}),
		"the spec of a policy": func(ctx context.Context) error {
			policy := &v1alpha1.ConversionPolicy{ObjectMeta: metav1.ObjectMeta{Name: active.Name}}
			return manager.Patch(ctx, policy, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"paused":true}}`)), client.DryRunAll)
		},
		"a conversion, by another client": change("replace", "/spec/conversion", map[string]any{"strategy": "None"}).write(cluster, active.Name, false),
	})
	for name, object := range refusedGrants() {
		writes[name] = creating(manager, object)
	}
	for name, patch := range notOfTheManager {
		writes["a definition: "+name] = patch.write(manager, active.Name, false)
	}
	return writes
}

// validations are the longest fixed parts of the messages of all validations in files of config.
func validations(t *testing.T, files ...string) []string {
	t.Helper()
	found := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join("..", "..", "..", "config", filepath.FromSlash(file)))
		expect.NoError(t, err)
		for document := range strings.SplitSeq(string(text), "\n---\n") {
			policy := &admissionregistrationv1.ValidatingAdmissionPolicy{}
			expect.NoError(t, yaml.Unmarshal([]byte(document), policy))
			for _, validation := range policy.Spec.Validations {
				message := validation.Message
				for _, part := range regexp.MustCompile(`'([^']*)'`).FindAllStringSubmatch(validation.MessageExpression, -1) {
					if len(part[1]) > len(message) {
						message = part[1]
					}
				}
				found[message] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// TestRestoredStoredVersions: status.storedVersions is restored without the storage version, which the API
// server accepts. The operator has it added again, without a change of the spec.
func TestRestoredStoredVersions(t *testing.T) {
	t.Parallel()
	active := activate(t, "restored.confined.example.com", shared)
	patchStatus(t, active.DeepCopy(), `{"status":{"storedVersions":["v1beta1"]}}`)
	expect.Eventually(t, "both versions are listed", func() (bool, string) {
		crd := getCRD(t, active.Name)
		return slices.Equal(crd.Status.StoredVersions, []string{"v1beta1", "v1"}) && crd.Generation == active.Generation, fmt.Sprint(crd.Generation, crd.Status.StoredVersions)
	})
}
