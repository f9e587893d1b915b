//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
	"github.com/conversion-operator/conversion-operator/internal/test/testenv"
)

// TestRulesOfVersions shows when rules that name only the old version stop matching, which the
// effects in the report rely on. The policies refuse every object that they see.
func TestRulesOfVersions(t *testing.T) {
	c := &cluster{testenv.For(t, testenv.Options{})}
	definition := c.define(t, apiextensionsv1.NamespaceScoped, "example.com", "crontabs", "CronTab", "v1beta1", "v1")
	c.refuse(t, "equivalent", admissionregistrationv1.Equivalent)
	c.refuse(t, "exact", admissionregistrationv1.Exact)

	c.refusedBy(t, "v1beta1", "equivalent", "exact")
	c.refusedBy(t, "v1", "equivalent")
	c.versions(t, definition, `[{"op":"replace","path":"/spec/versions/0/served","value":false}]`)
	c.refusedBy(t, "v1", "equivalent")
	c.versions(t, definition, `[{"op":"remove","path":"/spec/versions/0"}]`)
	c.refusedBy(t, "v1")
}

// refuse creates a policy and a webhook for the old version. The webhook cannot be called, which
// refuses requests, too.
func (c *cluster) refuse(t *testing.T, name string, policy admissionregistrationv1.MatchPolicyType) {
	t.Helper()
	rule := admissionregistrationv1.RuleWithOperations{
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{"example.com"}, APIVersions: []string{"v1beta1"}, Resources: []string{"crontabs"}},
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
	}
	expect.NoError(t, c.Client.Create(t.Context(), &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{MatchPolicy: &policy, ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: rule}},
				ObjectSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"for": "policy-" + name}}},
			Validations: []admissionregistrationv1.Validation{{Expression: "false", Message: "refused by " + name}},
		},
	}))
	expect.NoError(t, c.Client.Create(t.Context(), &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny}},
	}))
	expect.NoError(t, c.Client.Create(t.Context(), &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: name + ".example.com", MatchPolicy: &policy, Rules: []admissionregistrationv1.RuleWithOperations{rule},
			ObjectSelector:          &metav1.LabelSelector{MatchLabels: map[string]string{"for": name}},
			AdmissionReviewVersions: []string{"v1"}, SideEffects: new(admissionregistrationv1.SideEffectClassNone),
			ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: new("https://127.0.0.1:1/")},
		}},
	}))
}

// refusedBy waits until exactly the named policies, and the webhooks of these names, refuse objects
// at a version. API servers learn of policies and definitions with a delay. An API server names only
// one of several policies that refuse an object, so each has objects of its own.
func (c *cluster) refusedBy(t *testing.T, version string, names ...string) {
	t.Helper()
	for _, one := range []string{"equivalent", "exact"} {
		refused := slices.Contains(names, one)
		expect.Success(t, fmt.Sprintf("webhook %s refuses at %s: %t", one, version, refused), func(ctx context.Context) error {
			return c.try(ctx, version, one, one+".example.com", refused)
		})
		expect.Success(t, fmt.Sprintf("policy %s refuses at %s: %t", one, version, refused), func(ctx context.Context) error {
			return c.try(ctx, version, "policy-"+one, "refused by "+one, refused)
		})
	}
}

// try creates an object in a dry run, which a webhook or a policy refuses, or not.
func (c *cluster) try(ctx context.Context, version, label, by string, refused bool) error {
	object := custom("example.com/"+version, "CronTab", "tried")
	object.SetLabels(map[string]string{"for": label})
	err := c.Client.Create(ctx, object, client.DryRunAll)
	if refused && (err == nil || !strings.Contains(err.Error(), by)) {
		return fmt.Errorf("it is not refused: %w", errors.Join(err, errors.New("want "+by)))
	}
	if !refused {
		return err
	}
	return nil
}

func (c *cluster) versions(t *testing.T, definition *apiextensionsv1.CustomResourceDefinition, patch string) {
	t.Helper()
	expect.NoError(t, c.Client.Patch(t.Context(), definition, client.RawPatch(types.JSONPatchType, []byte(patch))))
	expect.Success(t, "v1beta1 is not served", func(ctx context.Context) error {
		if err := c.Client.Create(ctx, custom("example.com/v1beta1", "CronTab", "tried"), client.DryRunAll); err == nil {
			return errors.New("it is served")
		}
		return nil
	})
}
