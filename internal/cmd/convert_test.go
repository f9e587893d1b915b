// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// sampleFile is a file of the sample with host and port.
func sampleFile(name string) string {
	return filepath.Join("..", "..", "config", "samples", "crontab-hostport", name)
}

// write creates a temporary file.
func write(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// runWith is run with something on stdin.
func runWith(stdin string, args ...string) (stdout, stderr string, err error) {
	var out, errs bytes.Buffer
	root := NewRootCommand()
	root.SetIn(strings.NewReader(stdin))
	root.SetOut(&out)
	root.SetErr(&errs)
	root.SetArgs(args)
	err = root.Execute()
	return out.String(), errs.String(), err
}

func TestConvert(t *testing.T) {
	const (
		yamlObject = "apiVersion: example.com/v1beta1\nkind: CronTab\nmetadata:\n  name: a # gone\nhostPort: h:1\nreplicas: 9007199254740993\n"
		jsonObject = `{ "apiVersion" : "example.com/v1beta1", "kind":"CronTab",  "metadata": { "name":"a" }, "replicas":  1.50e0 , "hostPort":"h:1"}`
	)
	for name, test := range map[string]struct {
		args        []string
		stdin, want string
	}{
		"YAML": {
			[]string{"--to=v1"}, yamlObject,
			"apiVersion: example.com/v1\nkind: CronTab\nmetadata:\n  name: a\nreplicas: 9007199254740993\nhost: h\nport: \"1\"\n",
		},
		"YAML as JSON": {
			[]string{"--to=v1", "-o", "json"}, yamlObject,
			"{\n  \"apiVersion\": \"example.com/v1\",\n  \"kind\": \"CronTab\",\n  \"metadata\": {\n    \"name\": \"a\"\n  },\n  \"replicas\": 9007199254740993,\n  \"host\": \"h\",\n  \"port\": \"1\"\n}\n",
		},
		"JSON as YAML": {
			[]string{"--to=v1", "-o", "yaml", "-f", "-"}, jsonObject,
			"apiVersion: example.com/v1\nkind: CronTab\nmetadata:\n  name: a\nreplicas: 1.50e0\nhost: h\nport: \"1\"\n",
		},
		"to the version that it has": {[]string{"--to=v1beta1"}, jsonObject, jsonObject + "\n"},
		"several documents": {
			[]string{"--to=v1beta1"}, yamlObject + "---\n# nothing\n---\napiVersion: example.com/v1\nkind: CronTab\nport: '80'\n",
			"apiVersion: example.com/v1beta1\nkind: CronTab\nmetadata:\n  name: a\nhostPort: h:1\nreplicas: 9007199254740993\n---\napiVersion: example.com/v1beta1\nkind: CronTab\nmetadata: {}\nhostPort: :80\n",
		},
		"a list keeps its bytes": {
			[]string{"--to=v1"}, `{"kind":"List", "apiVersion" : "v1","items":[ {"apiVersion":"example.com/v1beta1","kind":"CronTab","metadata":{},"hostPort":"h:1"} ],"metadata":{ "n":1.0}}`,
			`{"kind":"List", "apiVersion" : "v1","items":[ {"apiVersion":"example.com/v1","kind":"CronTab","metadata":{},"host":"h","port":"1"} ],"metadata":{ "n":1.0}}` + "\n",
		},
		"a list of the kind is of its version": {
			[]string{"--to=v1"}, `{"kind":"CronTabList","items":[],"apiVersion":"example.com/v1beta1"}`, `{"kind":"CronTabList","items":[],"apiVersion":"example.com/v1"}` + "\n",
		},
		"other kinds stay": {
			[]string{"--to=v1"}, `{"kind":"List","apiVersion":"v1","items":[{"kind":"Pod","apiVersion":"v1"},{"kind":"CronTab","apiVersion":"example.org/v1beta1"},{"apiVersion":"example.com/v1beta1","kind":"CronTab","metadata":{},"hostPort":"h:1"}]}`,
			`{"kind":"List","apiVersion":"v1","items":[{"kind":"Pod","apiVersion":"v1"},{"kind":"CronTab","apiVersion":"example.org/v1beta1"},{"apiVersion":"example.com/v1","kind":"CronTab","metadata":{},"host":"h","port":"1"}]}` + "\n",
		},
		"a policy by its name": {
			[]string{"crontabs.example.com", "--to=v1beta1"}, jsonObject, jsonObject + "\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			args := append([]string{"convert", "--policy", sampleFile("2-policy.yaml"), "--crd", sampleFile("3-crd-both.yaml")}, test.args...)
			stdout, stderr, err := runWith(test.stdin, args...)
			if err != nil || stderr != "" {
				t.Fatalf("%v, stderr %q", err, stderr)
			}
			if diff := cmp.Diff(test.want, stdout); diff != "" {
				t.Errorf("stdout (-want +got):\n%s", diff)
			}
		})
	}
}

// TestConvertFailures checks the message and the exit code of every error.
func TestConvertFailures(t *testing.T) {
	policy, crd := sampleFile("2-policy.yaml"), sampleFile("3-crd-both.yaml")
	other := filepath.Join("..", "..", "config", "samples", "crontab-cronspec", "2-policy.yaml")
	text, err := os.ReadFile(policy)
	if err != nil {
		t.Fatal(err)
	}
	wrongPath := write(t, "policy.yaml", strings.ReplaceAll(string(text), ".hostPort", ".hostport"))
	wrongField := write(t, "policy.yaml", strings.ReplaceAll(string(text), "template:", "tmpl:"))
	otherText, err := os.ReadFile(other)
	if err != nil {
		t.Fatal(err)
	}
	both := write(t, "policies.yaml", string(text)+"---\n"+string(otherText))
	none := write(t, "none.yaml", "apiVersion: v1\nkind: ConfigMap\n")
	oldCRD := write(t, "crd.yaml", "apiVersion: apiextensions.k8s.io/v1beta1\nkind: CustomResourceDefinition\nmetadata: {name: crontabs.example.com}\n")
	emptyCRD := write(t, "crd.yaml", "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: crontabs.example.com}\nspec: {group: example.com}\n")
	thirdCRD := write(t, "crd.yaml", strings.ReplaceAll(readFile(t, crd), "crontabs.example.com", "crontabs.example.org"))
	twoBad := `{"kind":"List","apiVersion":"v1","items":[{"apiVersion":"example.com/v2","kind":"CronTab","metadata":{"namespace":"n","name":"a"}},{"apiVersion":"v1","kind":"Pod","metadata":{}},{"apiVersion":"example.com/v1alpha1","kind":"CronTab","metadata":{}}]}`
	twice := write(t, "twice.yaml", readFile(t, policy)+"---\n"+readFile(t, policy))
	states := write(t, "states.yaml", readFile(t, sampleFile("1-crd-v1beta1.yaml"))+"---\n"+readFile(t, crd))
	for name, test := range map[string]struct {
		args  []string
		stdin string
		code  int
		want  string
	}{
		"no policy":           {[]string{"--crd", crd, "--to=v1"}, "", 2, "--policy is required: the file of the ConversionPolicy"},
		"no such file":        {[]string{"--policy", "x.yaml", "--to=v1"}, "", 2, "stat x.yaml: no such file or directory"},
		"no CRD":              {[]string{"--policy", policy, "--to=v1"}, "", 2, "--crd is required, the file of the CustomResourceDefinition: " + policy + " has no CustomResourceDefinition, of the group apiextensions.k8s.io"},
		"no version":          {[]string{"--policy", policy, "--crd", crd}, "", 2, "--to is required: the version to convert to, for example v1"},
		"a wrong version":     {[]string{"--policy", policy, "--crd", crd, "--to=v3"}, "", 2, `--to must be one of v1, v1beta1, is "v3"`},
		"a wrong form":        {[]string{"--policy", policy, "--crd", crd, "--to=v1", "-o=xml"}, "", 2, `--output must be yaml or json, is "xml"`},
		"a wrong flag":        {[]string{"--two=v1"}, "", 2, "unknown flag: --two"},
		"two arguments":       {[]string{"a", "b"}, "", 2, "accepts at most 1 arg(s), received 2"},
		"a wrong log level":   {[]string{"--log-level=loud"}, "", 2, `--log-level must be debug, info or error, is "loud"`},
		"no file":             {[]string{"--policy", "nowhere.yaml", "--crd", crd, "--to=v1"}, "", 2, "stat nowhere.yaml: no such file or directory"},
		"a policy from stdin": {[]string{"--policy", "-", "--crd", crd, "--to=v1"}, "", 2, "a ConversionPolicy or CustomResourceDefinition cannot come from stdin: pass a file"},
		"no policy in it":     {[]string{"--policy", none, "--crd", crd, "--to=v1"}, "", 2, none + " has no ConversionPolicy, of the group conversion-operator.io"},
		"no such policy":      {[]string{"--policy", policy, "--crd", crd, "--to=v1", "x"}, "", 2, policy + " has no ConversionPolicy x, only: crontabs.example.com"},
		"another CRD":         {[]string{"--policy", other, "--crd", crd, "--to=v1"}, "", 2, crd + " has no CustomResourceDefinition crontabs.stable.example.com, only: crontabs.example.com"},
		"two of two policies": {[]string{"--policy", both, "--crd", both, "--to=v1"}, "", 2, both + " has no CustomResourceDefinition, of the group apiextensions.k8s.io"},
		"none of two":         {[]string{"--policy", both, "--crd", thirdCRD, "--to=v1"}, "", 2, "which ConversionPolicy of " + both + "? Name one as the argument: crontabs.example.com, crontabs.stable.example.com"},
		"two of one policy":   {[]string{"--policy", twice, "--crd", crd, "--to=v1"}, "", 2, twice + " has the ConversionPolicy crontabs.example.com more than once: keep one of them"},
		"two of one CRD":      {[]string{"--policy", policy, "--crd", states, "--to=v1"}, "", 2, states + " has the CustomResourceDefinition crontabs.example.com more than once: keep one of them"},
		"an old CRD":          {[]string{"--policy", policy, "--crd", oldCRD, "--to=v1"}, "", 2, oldCRD + ", document 1 (crontabs.example.com): apiVersion is apiextensions.k8s.io/v1beta1, only apiextensions.k8s.io/v1 is read: write it in that version"},
		"half a CRD":          {[]string{"--policy", policy, "--crd", emptyCRD, "--to=v1"}, "", 2, emptyCRD + ", document 1 (crontabs.example.com): spec.names.kind is empty: set it"},
		"a rule's path": {[]string{"--policy", wrongPath, "--crd", crd, "--to=v1"}, "", 2, "the rules of crontabs.example.com are not valid:\n" +
			`  spec.converter.declarative.spokes[0].rules[0].format.from: Invalid value: ".hostport": version v1beta1: the object has no field hostport in the schema…`},
		"a rule's field": {[]string{"--policy", wrongField, "--crd", crd, "--to=v1"}, "", 2, wrongField + ", document 1 (crontabs.example.com): the ConversionPolicy is not valid:\n" +
			"  spec.converter.declarative.spokes[0].rules[0].format.tmpl: a ConversionPolicy has no such field: correct the name, or remove it\n" +
			"  spec.converter.declarative.spokes[0].rules[0].format.template: Required value"},
		"nothing":          {[]string{"--policy", policy, "--crd", crd, "--to=v1"}, "# nothing", 2, "stdin has no objects of the kind CronTab of example.com"},
		"other kinds only": {[]string{"--policy", policy, "--crd", crd, "--to=v1"}, "apiVersion: v1\nkind: Pod\n", 2, "stdin has no objects of the kind CronTab of example.com"},
		"another ruleset":  {[]string{"--policy", policy, "--crd", crd, "--to=v1", "--ruleset=0123456789abcdef"}, "", 2, "--ruleset is 0123456789abcdef, and the rules of " + policy + " compile to …"},
		"no YAML":          {[]string{"--policy", policy, "--crd", crd, "--to=v1"}, "a: [", 2, "stdin, document 1: yaml: line 1: did not find expected node content"},
		"no objects":       {[]string{"--policy", policy, "--crd", crd, "--to=v1"}, "- a", 2, "stdin, document 1: expected an object, with apiVersion and kind"},
		"an item without kind": {
			[]string{"--policy", policy, "--crd", crd, "--to=v1"},
			`{"apiVersion":"example.com/v1beta1","kind":"CronTabList","items":[{"metadata":{"name":"a"},"hostPort":"h:1"}]}`, 1,
			"stdin, document 1, items[0] (a): an item of a CronTabList must have the kind CronTab, and an apiVersion of example.com: add them",
		},
		"all that fail": {
			[]string{"--policy", both, "--crd", crd, "--to=v1"}, twoBad, 1,
			"stdin, document 1, items[0] (n/a): version \"v2\" is not in the ruleset of crontabs.example.com, which has v1, v1beta1: a version that was just added is converted once its ruleset is rolled out\n" +
				"stdin, document 1, items[2]: version \"v1alpha1\" is not in the ruleset of crontabs.example.com, which has v1, v1beta1: a version that was just added is converted once its ruleset is rolled out",
		},
	} {
		t.Run(name, func(t *testing.T) {
			stdout, stderr, err := runWith(test.stdin, append([]string{"convert"}, test.args...)...)
			if err == nil {
				t.Fatal("no error")
			}
			want, open := strings.CutSuffix("Error: "+test.want+"\n", "…\n")
			if open && strings.HasPrefix(stderr, want) {
				want = stderr // the compiler may say more
			}
			if diff := cmp.Diff(want, stderr); diff != "" {
				t.Errorf("stderr (-want +got):\n%s", diff)
			}
			if code := ExitCode(err); code != test.code || stdout != "" {
				t.Errorf("exit code %d, want %d; stdout %q", code, test.code, stdout)
			}
		})
	}
}

func TestExitCode(t *testing.T) {
	if code := ExitCode(nil); code != 0 {
		t.Errorf("exit code is %d without an error", code)
	}
	_, _, err := run("serve", "--bind-address=:0")
	if code := ExitCode(err); code != 1 {
		t.Errorf("exit code of serve is %d", code)
	}
}
