// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package dependents

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

func TestRules(t *testing.T) {
	for name, test := range map[string]struct {
		rules string
		want  string
	}{
		"only the old version": {"[{apiGroups: [example.com], apiVersions: [v1beta1], resources: [crontabs], operations: [CREATE]}]", "0"},
		"both versions":        {"[{apiGroups: [example.com], apiVersions: [v1beta1, v1], resources: [crontabs], operations: [CREATE]}]", ""},
		"all versions":         {"[{apiGroups: [example.com], apiVersions: ['*'], resources: [crontabs], operations: [CREATE]}]", ""},
		"all groups":           {"[{apiGroups: ['*'], apiVersions: [v1beta1], resources: ['*'], operations: ['*']}]", "0"},
		"another group":        {"[{apiGroups: [example.org], apiVersions: [v1beta1], resources: [crontabs], operations: [CREATE]}]", ""},
		"another resource":     {"[{apiGroups: [example.com], apiVersions: [v1beta1], resources: [others, others/status], operations: [CREATE]}]", ""},
		"another scope":        {"[{apiGroups: [example.com], apiVersions: [v1beta1], resources: [crontabs], operations: [CREATE], scope: Cluster}]", ""},
		"its scope":            {"[{apiGroups: [example.com], apiVersions: [v1beta1], resources: [crontabs], operations: [CREATE], scope: Namespaced}]", "0"},
		"a version that stays in another rule": {"[{apiGroups: [example.com], apiVersions: [v1beta1], resources: [crontabs], operations: [CREATE]}," +
			"{apiGroups: [example.com], apiVersions: [v1], resources: [crontabs], operations: [CREATE, UPDATE]}]", ""},
		"fewer operations in another rule": {"[{apiGroups: [example.com], apiVersions: [v1], resources: [crontabs], operations: [CREATE]}," +
			"{apiGroups: [example.com], apiVersions: [v1beta1], resources: [crontabs], operations: [CREATE, DELETE]}]", "1"},
		"all operations in another rule": {"[{apiGroups: [example.com], apiVersions: [v1], resources: ['*/*'], operations: ['*']}," +
			"{apiGroups: [example.com], apiVersions: [v1beta1], resources: [crontabs/status], operations: [UPDATE]}]", ""},
		"a subresource in another rule": {"[{apiGroups: [example.com], apiVersions: [v1], resources: [crontabs/status], operations: ['*']}," +
			"{apiGroups: [example.com], apiVersions: [v1beta1], resources: [crontabs], operations: [UPDATE]}]", "1"},
		"names in another rule": {"[{apiGroups: [example.com], apiVersions: [v1], resources: [crontabs], operations: ['*'], resourceNames: [a]}," +
			"{apiGroups: [example.com], apiVersions: [v1beta1], resources: [crontabs], operations: [UPDATE]}]", "1"},
		"all names in another rule": {"[{apiGroups: [example.com], apiVersions: [v1], resources: [crontabs], operations: ['*']}," +
			"{apiGroups: [example.com], apiVersions: [v1beta1], resources: [crontabs], operations: [UPDATE], resourceNames: [a]}]", ""},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := yaml.YAMLToJSON([]byte("{kind: ValidatingWebhookConfiguration, metadata: {name: w}, webhooks: [{name: a.b.c, rules: " + test.rules + "}]}"))
			expect.NoError(t, err)
			found, err := target(t).Admission(text)
			expect.NoError(t, err)
			var got []string
			for _, dependent := range found {
				index := strings.TrimPrefix(dependent.Field, ".webhooks[0].rules[")
				got = append(got, strings.TrimSuffix(index, "].apiVersions"))
			}
			expect.Equal(t, "rules", test.want, strings.Join(got, " "))
		})
	}
}

func TestAdmissionEffects(t *testing.T) {
	const rules = "[{apiGroups: [example.com], apiVersions: [v1beta1], resources: [crontabs], operations: [CREATE]}]"
	for name, test := range map[string]struct{ content, effect, cure string }{
		"Equivalent": {"webhooks: [{name: a.b.c, matchPolicy: Equivalent, rules: " + rules + "}]",
			"once the version is removed, API servers no longer call the webhook a.b.c", "add v1 to apiVersions; the webhook must accept objects of that version"},
		"Exact": {"webhooks: [{name: a.b.c, matchPolicy: Exact, rules: " + rules + "}]",
			"the rule matches only requests for the version, by matchPolicy Exact; once it is not served, API servers no longer call the webhook a.b.c",
			"add v1 to apiVersions; the webhook must accept objects of that version"},
		"a policy": {"spec: {matchConstraints: {resourceRules: " + rules + "}}",
			"once the version is removed, the policy no longer applies", "add v1 to apiVersions; its expressions then read objects of that version"},
		"an exclusion": {"spec: {matchConstraints: {excludeResourceRules: " + rules + "}}",
			"once the version is removed, the policy applies to what the rule excluded", "add v1 to apiVersions"},
		"parameters": {"spec: {paramKind: {apiVersion: example.com/v1beta1, kind: CronTab}}",
			"API servers cannot read the parameters of the policy, and refuse the requests, unless its failurePolicy is Ignore",
			"change it to example.com/v1, and the expressions that read parameters"},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := yaml.YAMLToJSON([]byte(test.content))
			expect.NoError(t, err)
			found, err := target(t).Admission(text)
			if err != nil || len(found) != 1 {
				t.Fatalf("%v: %v", err, found)
			}
			expect.Equal(t, "effect and cure", []string{test.effect, test.cure}, []string{found[0].Effect, found[0].Cure})
		})
	}
	if _, err := target(t).Admission([]byte("[]")); err == nil {
		t.Error("a list is accepted")
	}
}
