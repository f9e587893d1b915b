// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rewrite_test

import (
	"strings"
	"testing"

	"github.com/conversion-operator/conversion-operator/internal/rewrite"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// strange is an unusual text, and what it becomes: an empty after is the same text.
type strange struct {
	name, before, after, summary string
}

const (
	oldHead = "apiVersion: example.com/v1beta1\nkind: Gateway\nmetadata: {name: a}\n"
	newHead = "apiVersion: example.com/v1\nkind: Gateway\nmetadata: {name: a}\n"
)

// TestStrangeTexts: manifests that people seldom write are rewritten, or named.
func TestStrangeTexts(t *testing.T) {
	t.Parallel()
	rewriter := newRewriter(t, rewrite.Options{To: "v1"}, "testdata/policy.yaml")
	for _, test := range []strange{{
		"a list without a version",
		"kind: GatewayList\nitems:\n- apiVersion: example.com/v1beta1\n  kind: Gateway\n  metadata: {name: a}\n",
		"kind: GatewayList\nitems:\n- apiVersion: example.com/v1\n  kind: Gateway\n  metadata: {name: a}\n",
		"line 3: a, v1beta1, Rewritten\n",
	}, {
		"a list whose version has an escape",
		`{"apiVersion": "example.com\u002fv1beta1", "kind": "GatewayList", "items": [{"apiVersion": "example.com/v1beta1", "kind": "Gateway", "metadata": {"name": "a"}, "spec": {"replicas": 2}}]}`,
		`{"apiVersion": "example.com/v1", "kind": "GatewayList", "items": [{"apiVersion": "example.com/v1", "kind": "Gateway", "metadata": {"name": "a"}, "spec": {"replicas": 2, "class": "standard"}}]}`,
		"line 1: a, v1beta1, Rewritten\n",
	}, {
		"versions and kinds that are aliases",
		"apiVersion: v1\nkind: List\nitems:\n- apiVersion: &v example.com/v1beta1\n  kind: &k Gateway\n  metadata: {name: a}\n  spec: {replicas: 2}\n- apiVersion: *v\n  kind: *k\n  metadata: {name: b}\n  spec: {replicas: 2}\n",
		"apiVersion: v1\nkind: List\nitems:\n- apiVersion: example.com/v1\n  kind: &k Gateway\n  metadata: {name: a}\n  spec: {replicas: 2, class: standard}\n- apiVersion: example.com/v1\n  kind: *k\n  metadata: {name: b}\n  spec: {replicas: 2, class: standard}\n",
		"line 4: a, v1beta1, Rewritten\nline 8: b, v1beta1, Rewritten\n",
	}, {
		"a comment behind the mark of a block",
		oldHead + "spec:\n  replicas: 2\n  timeout: |-  # how long\n    90s\n  zone: >- # where\n    east\n",
		newHead + "spec:\n  replicas: 2\n  # how long\n  timeoutSeconds: 90\n  # where\n  zones:\n  - east\n  class: standard\n",
		"line 1: a, v1beta1, Rewritten\n  note, line 6: .spec.timeout: is \"1m30s\" if it is read at v1beta1 again\n",
	}, {
		"a plain text over several lines in brackets",
		oldHead + "spec: {replicas: 2, script: echo\n  hello, image: x, resources: {cpu: two\n    of, memory: z}}\n",
		newHead + "spec: {replicas: 2, script: echo\n  hello, class: standard, container: {image: x, resources: {cpu: two of, memory: z}}}\n",
		"line 1: a, v1beta1, Rewritten\n",
	}, {
		"comments in brackets that others replace",
		oldHead + "spec: {replicas: 2, variables: [ # all\n  {name: A, value: x}, # the first\n  {name: B, value: z}]}\n",
		newHead + "spec: {replicas: 2, environment: {A: x, B: z}, class: standard}\n",
		"line 1: a, v1beta1, Rewritten\n  note, line 4: : this comment has no place in the new text, and is left out: # all\n  note, line 5: : this comment has no place in the new text, and is left out: # the first\n",
	}, {
		"a name that is there twice",
		oldHead + "spec:\n  zone: a\n  zone: b\n",
		"",
		"line 1: a, v1beta1, Left\n  line 6: : duplicate name \"zone\"\n",
	}} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.check(t, rewriter.Text([]byte(test.before)))
		})
	}
}

// TestStrangeKustomizations: patches in a kustomization keep its line breaks, and are found in one line.
func TestStrangeKustomizations(t *testing.T) {
	t.Parallel()
	rewriter := newRewriter(t, rewrite.Options{To: "v1"}, "testdata/policy.yaml")
	margin := func(text string) string {
		return "    " + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n    ") + "\n"
	}
	was, becomes := margin(oldHead+"spec:\n  image: x"), margin(newHead+"spec:\n  container:\n    image: x")
	crlf := func(text string) string { return strings.ReplaceAll(text, "\n", "\r\n") }
	for _, test := range []strange{{
		"a block without its last line break",
		"patches:\n- patch: |-\n" + was, "patches:\n- patch: |-\n" + becomes, "line 3: a, v1beta1, Rewritten\n",
	}, {
		"line breaks of Windows",
		crlf("patches:\n- patch: |\n" + was), crlf("patches:\n- patch: |\n" + becomes), "line 3: a, v1beta1, Rewritten\n",
	}, {
		"an operation in one line",
		"patches:\n- target: {kind: Gateway}\n  patch: |-\n    - {op: remove, path: /spec/image}\n",
		"patches:\n- target: {kind: Gateway}\n  patch: |-\n    - {op: remove, path: /spec/container/image}\n",
		"line 4: a JSON patch, v1beta1, Rewritten\n",
	}, {
		"an object in one line",
		`patches: [{patch: '{"apiVersion": "example.com/v1beta1", "kind": "Gateway", "metadata": {"name": "a"}, "spec": {"replicas": 2}}'}]`,
		`patches: [{patch: '{"apiVersion": "example.com/v1", "kind": "Gateway", "metadata": {"name": "a"}, "spec": {"replicas": 2}}'}]`,
		"line 1: a, v1beta1, Rewritten\n",
	}, {
		"a folded block",
		"patches:\n- patch: >-\n    [{\"op\": \"remove\", \"path\": \"/spec/image\"}]\n  target: {kind: Gateway}\n",
		"patches:\n- patch: '[{\"op\": \"remove\", \"path\": \"/spec/container/image\"}]'\n  target: {kind: Gateway}\n",
		"line 3: a JSON patch, v1beta1, Rewritten\n",
	}, {
		"a target whose patch stays",
		"patches:\n- target: {kind: Gateway, version: v1beta1}\n  patch: |-\n    - {op: remove, path: /spec/note}\n",
		"",
		"line 2: the target of a patch, v1beta1, Left\n  line 2: : its patch stays, too\nline 4: a JSON patch, v1beta1, Left\n  line 4: : .spec.note: version v1 cannot express it: v1 has no such field\n",
	}, {
		"a target of another kind that is an alias",
		"patches:\n- {target: &t {kind: Deployment}, path: p.yaml}\n- target: *t\n  patch: |-\n    - {op: remove, path: /spec/image}\n- target: {kind: Gateway}\n  patch: |-\n    - {op: remove, path: /spec/replicas}\n",
		"",
		"line 8: a JSON patch, v1beta1, Current\n",
	}, {
		"a patch that is not YAML",
		"patches:\n- target: {kind: Gateway}\n  patch: |-\n    - {op: remove, path: /spec/image\n",
		"",
		"line 4: this is not YAML: did not find expected ',' or '}'\n",
	}} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.check(t, rewriter.Kustomization([]byte(test.before), nil))
		})
	}
}

func (s *strange) check(t *testing.T, result *rewrite.Result) {
	t.Helper()
	want := s.after
	if want == "" {
		want = s.before
	}
	expect.Equal(t, "the text differs", want, string(result.Text))
	expect.Equal(t, "the summary differs", s.summary, summary(result))
}
