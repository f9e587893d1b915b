// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package dependents

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// encodeRelease encodes a record as Helm does.
func encodeRelease(t *testing.T, content string) []byte {
	t.Helper()
	var compressed bytes.Buffer
	writer := gzip.NewWriter(&compressed)
	if _, err := writer.Write([]byte(content)); err != nil {
		t.Fatal(err)
	}
	expect.NoError(t, writer.Close())
	return []byte(base64.StdEncoding.EncodeToString(compressed.Bytes()))
}

func recordOf(t *testing.T, status, manifest, hook string) *Release {
	t.Helper()
	content, err := json.Marshal(map[string]any{
		"name": "r", "namespace": "n", "version": 7, "info": map[string]any{"status": status}, "manifest": manifest,
		"hooks": []any{map[string]any{"name": "h", "manifest": hook, "weight": 1}}, "config": map[string]any{"big": json.Number("9007199254740993")},
	})
	expect.NoError(t, err)
	release, err := DecodeRelease(encodeRelease(t, string(content)))
	expect.NoError(t, err)
	return release
}

func TestReleaseRepair(t *testing.T) {
	for name, test := range map[string]struct{ manifest, want string }{
		"plain":           {"apiVersion: example.com/v1beta1\nkind: CronTab\n", "apiVersion: example.com/v1\nkind: CronTab\n"},
		"comments":        {"---\n# Source: a\napiVersion: 'example.com/v1beta1'  # old\nkind: CronTab\n---\n", "---\n# Source: a\napiVersion: 'example.com/v1'  # old\nkind: CronTab\n---\n"},
		"JSON":            {"{\"kind\":\"CronTab\",\"apiVersion\":\"example.com/v1beta1\"}\n", "{\"kind\":\"CronTab\",\"apiVersion\":\"example.com/v1\"}\n"},
		"other documents": {"apiVersion: v1\nkind: Secret\n---\nkind: CronTab\napiVersion: example.com/v1beta1", "apiVersion: v1\nkind: Secret\n---\nkind: CronTab\napiVersion: example.com/v1"},
		"a list": {"apiVersion: v1\nkind: List\nitems:\n- apiVersion: example.com/v1beta1\n  kind: CronTab\n- {apiVersion: example.com/v1beta1, kind: Other}\n",
			"apiVersion: v1\nkind: List\nitems:\n- apiVersion: example.com/v1\n  kind: CronTab\n- {apiVersion: example.com/v1beta1, kind: Other}\n"},
		"two on a line": {"{kind: List, apiVersion: v1, items: [{apiVersion: example.com/v1beta1, kind: CronTab}, {apiVersion: example.com/v1beta1, kind: CronTab}]}\n",
			"{kind: List, apiVersion: v1, items: [{apiVersion: example.com/v1, kind: CronTab}, {apiVersion: example.com/v1, kind: CronTab}]}\n"},
		"text":           {"apiVersion: example.com/v1\nkind: CronTab\nnote: |\n  apiVersion: example.com/v1beta1\n  kind: CronTab\n", "apiVersion: example.com/v1\nkind: CronTab\nnote: |\n  apiVersion: example.com/v1beta1\n  kind: CronTab\n"},
		"another kind":   {"apiVersion: example.com/v1beta1\nkind: Other\n", "apiVersion: example.com/v1beta1\nkind: Other\n"},
		"carriage":       {"apiVersion: example.com/v1beta1\r\nkind: CronTab\r\n", "apiVersion: example.com/v1\r\nkind: CronTab\r\n"},
		"other letters":  {"{note: äöü, apiVersion: example.com/v1beta1, kind: CronTab}\n", "{note: äöü, apiVersion: example.com/v1, kind: CronTab}\n"},
		"no documents":   {"", ""},
		"only a comment": {"# example.com/v1beta1\n", "# example.com/v1beta1\n"},
	} {
		t.Run(name, func(t *testing.T) {
			target := target(t)
			release := recordOf(t, "deployed", test.manifest, test.manifest)
			expect.NoError(t, release.Repair(target))
			encoded, err := release.Encode()
			expect.NoError(t, err)
			again, err := DecodeRelease(encoded)
			expect.NoError(t, err)
			expect.Equal(t, "manifests", []string{test.want, test.want}, again.texts)
			if n, _, err := again.Count(target); n != 0 || err != nil {
				t.Errorf("it still names the version %d times, %v", n, err)
			}
			if got := string(again.members["config"]); got != `{"big":9007199254740993}` || again.Revision != 7 || again.Status != "deployed" || string(again.hooks[0]["weight"]) != "1" {
				t.Errorf("the repair changed more: %s, %+v", got, again)
			}
		})
	}
}

func TestReleaseIn(t *testing.T) {
	const old = "apiVersion: example.com/v1beta1\nkind: CronTab\n"
	for status, want := range map[string]bool{"deployed": true, "failed": true, "pending-upgrade": false, "uninstalling": false} {
		found, err := recordOf(t, status, old, old).In(target(t), Object{Kind: "Secret", Namespace: "n", Name: "s"})
		if err != nil || len(found) != 1 || found[0].Repairable != want || found[0].Place() != "release r, revision 7, Secret n/s, 2 in total" {
			t.Errorf("%s: %v, %v", status, found, err)
		}
	}
	if found, err := recordOf(t, "deployed", "", "").In(target(t), Object{}); err != nil || len(found) > 0 {
		t.Errorf("%v, %v", found, err)
	}
}

func TestReleaseErrors(t *testing.T) {
	for name, test := range map[string]struct {
		encoded []byte
		want    string
	}{
		"base64":      {[]byte("%"), "decode base64: illegal base64 data at input byte 0"},
		"gzip":        {[]byte(base64.StdEncoding.EncodeToString([]byte{0x1f, 0x8b})), "decompress: unexpected EOF"},
		"JSON":        {encodeRelease(t, "[]"), "decode JSON: "},
		"too large":   {encodeRelease(t, strings.Repeat(" ", mostRelease+1)), "decompress: the record is larger than 64 MiB"},
		"a bad hook":  {encodeRelease(t, `{"hooks":[{"manifest":1}]}`), "decode the manifest of a hook: "},
		"no manifest": {encodeRelease(t, `{"manifest":{}}`), "decode JSON: "},
	} {
		if _, err := DecodeRelease(test.encoded); !strings.HasPrefix(fmt.Sprint(err), test.want) {
			t.Errorf("%s: error is %v, want %q", name, err, test.want)
		}
	}
	broken := recordOf(t, "deployed", "apiVersion: example.com/v1beta1\nkind: CronTab\n---\n{", "")
	if _, err := broken.In(target(t), Object{}); err == nil {
		t.Error("a broken manifest has no error")
	}
	expect.Equal(t, "a broken manifest is repaired", false, broken.Repair(target(t)) == nil)
}

// TestHelmMap replaces text as the plugin does.
func TestHelmMap(t *testing.T) {
	text, err := HelmMap(target(t), []string{"v1beta1"})
	expect.NoError(t, err)
	var file struct {
		Mappings []struct{ DeprecatedAPI, NewAPI, DeprecatedInVersion, RemovedInVersion string }
	}
	expect.NoError(t, yaml.UnmarshalStrict(text, &file))
	manifest := "apiVersion: example.com/v1beta1\nkind: CronTab\n---\nkind: CronTab\napiVersion: example.com/v1beta1\n---\napiVersion: example.com/v1beta1\nkind: CronTabs\n"
	for _, mapping := range file.Mappings {
		if mapping.DeprecatedInVersion != "v1.0.0" || mapping.RemovedInVersion != "v1.0.0" {
			t.Errorf("mapping is %+v", mapping)
		}
		manifest = strings.ReplaceAll(manifest, mapping.DeprecatedAPI, mapping.NewAPI)
	}
	want := "apiVersion: example.com/v1\nkind: CronTab\n---\nkind: CronTab\napiVersion: example.com/v1\n---\napiVersion: example.com/v1beta1\nkind: CronTabs\n"
	expect.Equal(t, "manifest after the map\n"+string(text), want, manifest)
}
