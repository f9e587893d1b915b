// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package cmd

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// diffLive compares files with the policy and the CustomResourceDefinition of an API server, which
// has added defaults, status and metadata.
func diffLive(t *testing.T, kubeconfig string) {
	policy, crd := sampleFile("2-policy.yaml"), sampleFile("3-crd-both.yaml")
	changed := func(name, file, from, to string) string {
		t.Helper()
		text := readFile(t, file)
		if !strings.Contains(text, from) {
			t.Fatalf("%s lacks %q", file, from)
		}
		return write(t, name, strings.Replace(text, from, to, 1))
	}
	lossy := changed("lossy.yaml", policy, "        rules:\n", "        rules:\n        - drop: {from: .note}\n")
	renamed := changed("renamed.yaml", policy, "{host: .host, port: .port}", "{host: .host, port: .ports}")
	noNote := changed("no-note.yaml", crd, "          note: {type: string}\n", "")
	unserved := changed("unserved.yaml", crd, "- name: v1beta1\n    served: true\n    storage: true", "- name: v1beta1\n    served: false\n    storage: true")
	another := write(t, "another.yaml", strings.NewReplacer("crontabs", "jobs", "CronTab", "Job").Replace(readFile(t, policy)+"---\n"+readFile(t, crd)))
	const worse = "Error: something gets worse; see the report\n"
	for name, test := range map[string]struct {
		args           []string
		code           int
		stdout, stderr string
	}{
		"a policy as it is":    {[]string{"-f", policy}, 0, "crontabs.example.com: conversions do not change\n", ""},
		"both as they are":     {[]string{"-f", policy, "-f", crd}, 0, "crontabs.example.com: conversions do not change\n", ""},
		"a version not served": {[]string{"-f", unserved}, 0, "crontabs.example.com: conversions do not change\n", ""},
		"the previous revision": {[]string{"-f", sampleFile("1-crd-v1beta1.yaml")}, 0, `crontabs.example.com: nothing gets worse
  1 version removed: v1
`, ""},
		"a policy that drops": {[]string{"-f", lossy}, 1, `crontabs.example.com: something gets worse

CONVERSION     BEFORE      AFTER
v1beta1 → v1   Preserved   Lossy

FIELD           IN   BEFORE      AFTER                              CONSEQUENCE
v1beta1:.note   v1   preserved   dropped, spokes[0].rules[0] drop   it is lost in v1
`, worse},
		"a definition without a field": {[]string{"-f", noNote}, 1, `crontabs.example.com: something gets worse
  v1beta1 accepts fewer values: .note: the field is removed: its values are pruned

CONVERSION     BEFORE      AFTER
v1beta1 → v1   Preserved   Exact

FIELD           IN   BEFORE      AFTER   CONSEQUENCE
v1beta1:.note   v1   preserved   -       v1beta1 lacks the field: API servers prune what objects have there
`, worse},
		"rules that do not fit": {[]string{"-f", renamed}, 1, `crontabs.example.com: the rules are no longer valid
  spec.converter.declarative.spokes[0].rules[0].format.to[port]: Invalid value: ".ports": version v1: the object has no field ports in the schema: did you mean .port?
`, worse},
		"what the cluster lacks": {[]string{"-f", another}, 0, `jobs.example.com: a new policy

FIELD                IN        BEFORE   AFTER                              CONSEQUENCE
v1:.host             v1beta1   -        exact, spokes[0].rules[0] format   the policy is new
v1:.port             v1beta1   -        exact, spokes[0].rules[0] format   the policy is new
v1:.replicas         v1beta1   -        exact                              the policy is new
v1:.timeoutSeconds   v1beta1   -        preserved                          the policy is new
v1beta1:.hostPort    v1        -        exact, spokes[0].rules[0] format   the policy is new
v1beta1:.note        v1        -        preserved                          the policy is new
v1beta1:.replicas    v1        -        exact                              the policy is new
`, ""},
		"without the right to read": {[]string{"-f", policy, "--as=nobody"}, 2, "",
			`Error: read crontabs.example.com of the cluster: conversionpolicies.conversion-operator.io "crontabs.example.com" is forbidden: ` +
				`User "nobody" cannot get resource "conversionpolicies" in API group "conversion-operator.io" at the cluster scope` + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			stdout, stderr, err := run(append([]string{"diff", "--kubeconfig", kubeconfig}, test.args...)...)
			if diff := cmp.Diff(test.stdout, stdout); diff != "" || stderr != test.stderr || ExitCode(err) != test.code {
				t.Errorf("exit code %d, want %d; stderr %q, want %q; stdout (-want +got):\n%s", ExitCode(err), test.code, stderr, test.stderr, diff)
			}
		})
	}
}
