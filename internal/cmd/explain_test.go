// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestExplain(t *testing.T) {
	files := []string{"explain", "--policy", sampleFile("2-policy.yaml"), "--crd", sampleFile("3-crd-both.yaml"), "-f", "-"}
	const object = `{"apiVersion":"example.com/v1beta1","kind":"CronTab","metadata":{"name":"a"},"hostPort":"h:1","note":"n"}`
	job := strings.Replace(object, "CronTab", "Job", 1)
	for name, test := range map[string]struct {
		args  []string
		stdin string
		code  int
		want  string
	}{
		"an object": {nil, object, 0, `stdin, document 1 (a): v1beta1 → v1

FIELD OF v1   VALUE              FROM v1beta1   RULE                                        VERDICT
.host         "h"     computed   .hostPort      spokes[0].rules[0] format "{host}:{port}"   Exact
.port         "1"     computed   .hostPort      spokes[0].rules[0] format "{host}:{port}"   Exact

Preserved in the annotation conversion-operator.io/v1beta1.crontabs.example.com
FIELD OF v1beta1   VALUE   WHY                    RULE
.note              "n"     v1 has no such field   -
`},
		"a field": {[]string{"--field", "port", "--to=v1"}, object, 0, `stdin, document 1 (a): v1beta1 → v1

FIELD OF v1   VALUE              FROM v1beta1   RULE                                        VERDICT
.port         "1"     computed   .hostPort      spokes[0].rules[0] format "{host}:{port}"   Exact
`},
		"a field that is not there": {[]string{"--field", "replicas"}, object, 2, "Error: no object has a value at replicas: --all explains fields that objects do not have\n"},
		"an unknown version":        {[]string{"--to", "v7"}, object, 2, "Error: --to must be one of v1, v1beta1, is \"v7\"\n"},
		"its own version":           {[]string{"--to", "v1beta1"}, object, 2, "Error: nothing to convert: every object is already at v1beta1\n"},
		"no object":                 {nil, `{"apiVersion":"v1","kind":"List","items":[]}`, 2, "Error: stdin has no CronTab, of the group example.com\n"},
		"another kind":              {nil, job, 2, "Error: stdin has no CronTab, of the group example.com\n"},
		"another kind beside it": {[]string{"--field", "port"}, job + "\n---\n" + object, 0, `stdin, document 2 (a): v1beta1 → v1

FIELD OF v1   VALUE              FROM v1beta1   RULE                                        VERDICT
.port         "1"     computed   .hostPort      spokes[0].rules[0] format "{host}:{port}"   Exact
objects of other kinds, ignored: 1
`},
		"a version to read": {[]string{"--from", "v1"}, object, 2, "Error: --from is the version at which to read an object of the cluster: an object of a file has its own version\n"},
	} {
		t.Run(name, func(t *testing.T) {
			stdout, stderr, err := runWith(test.stdin, append(files, test.args...)...)
			if diff := cmp.Diff(test.want, stdout+stderr); diff != "" || ExitCode(err) != test.code {
				t.Errorf("exit code %d, output (-want +got):\n%s", ExitCode(err), diff)
			}
		})
	}
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"no object": {nil, "which object? Name it as TYPE/NAME, for example crontab/local, or pass files with -f"},
		"no name":   {[]string{"crontab"}, `"crontab" is not an object: name it as TYPE/NAME, for example crontab/local`},
		"both":      {[]string{"crontab", "x", "-f", "x"}, "name an object of the cluster, or pass files with -f: with files, the argument is the name of a policy"},
	} {
		t.Run(name, func(t *testing.T) {
			_, stderr, err := run(append([]string{"explain"}, test.args...)...)
			if stderr != "Error: "+test.want+"\n" || ExitCode(err) != 2 {
				t.Errorf("stderr is %q, want %q", stderr, test.want)
			}
		})
	}
}

// TestMaximumDepthOfFiles: an object with the maximum depth of API servers can be explained from a
// file. A deeper one is refused when the file is read.
func TestMaximumDepthOfFiles(t *testing.T) {
	const levels = 10_000
	explain := func(levels int) error {
		inner := levels - 1 // the object itself is the first
		object := "apiVersion: example.com/v1beta1\nkind: CronTab\nx: " + strings.Repeat("[", inner) + strings.Repeat("]", inner) + "\n"
		_, _, err := runWith(object, "explain", "--policy", sampleFile("2-policy.yaml"), "--crd", sampleFile("3-crd-both.yaml"), "--to=v1", "-f", "-")
		return err
	}
	if err := explain(levels); err != nil {
		t.Errorf("%d levels: %v", levels, err)
	}
	const want = "stdin, document 1: line 3: nested deeper than 10000 levels of objects and lists, which is the maximum of API servers"
	if err := explain(levels + 1); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%d levels: %v, want %s", levels+1, err, want)
	}
}
