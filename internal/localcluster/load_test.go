// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestImageNamesOfAnArchive(t *testing.T) {
	named := func(annotation, name string) string {
		return `{"manifests":[{"annotations":{"` + annotation + `":"` + name + `"}}]}`
	}
	const refName = "org.opencontainers.image.ref.name"
	tests := map[string]struct {
		file, content string
		want          []string
		wantErr       string
	}{
		"docker":               {"manifest.json", `[{"RepoTags":["local/a:1","b"]}]`, []string{"local/a:1", "b"}, ""},
		"OCI":                  {"index.json", named(refName, "localhost/a:1"), []string{"localhost/a:1"}, ""},
		"OCI of containerd":    {"./index.json", named("io.containerd.image.name", "ghcr.io/a/b:1"), []string{"ghcr.io/a/b:1"}, ""},
		"OCI without registry": {"index.json", named(refName, "a:1"), nil, "call it localhost/a:1"},
		"OCI with a user only": {"index.json", named(refName, "me/a:1"), nil, "call it localhost/me/a:1"},
		"OCI without name":     {"index.json", `{"manifests":[{}]}`, nil, "no image in it has a name"},
		"something else":       {"readme", "text", nil, "no image in it has a name"},
		"damaged":              {"index.json", "{", nil, "index.json is damaged"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var archive bytes.Buffer
			if err := writeTar(&archive, tarFile{test.file, 0o644, []byte(test.content)}); err != nil {
				t.Fatal(err)
			}
			got, err := imageNames(&archive)
			if test.wantErr == "" && err != nil || test.wantErr != "" && (err == nil || !strings.Contains(err.Error(), test.wantErr)) {
				t.Errorf("got error %v, want %q", err, test.wantErr)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestACompressedArchiveIsRefused(t *testing.T) {
	_, err := imageNames(strings.NewReader("\x1f\x8b" + strings.Repeat("x", 1024)))
	if err == nil || !strings.Contains(err.Error(), "not an uncompressed OCI or docker archive") {
		t.Errorf("got error %v", err)
	}
}
