// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

func TestImageArchive(t *testing.T) {
	var archive, again bytes.Buffer
	for _, w := range []io.Writer{&archive, &again} {
		expect.NoError(t, writeImage(w, "local/test:1", "test", []byte("program")))
	}
	if !bytes.Equal(archive.Bytes(), again.Bytes()) {
		t.Error("the same program gave two different archives")
	}
	files := readTar(t, &archive)
	layer := files["layer.tar"]
	config := mustJSON(t, map[string]any{
		"architecture": runtime.GOARCH,
		"os":           "linux",
		"config":       map[string]any{"Entrypoint": []string{"/test"}},
		"rootfs":       map[string]any{"type": "layers", "diff_ids": []string{fmt.Sprintf("sha256:%x", sha256.Sum256(layer))}},
	})
	configName := fmt.Sprintf("%x.json", sha256.Sum256(config))
	want := map[string][]byte{
		"manifest.json": mustJSON(t, []any{map[string]any{"Config": configName, "RepoTags": []string{"local/test:1"}, "Layers": []string{"layer.tar"}}}),
		configName:      config,
		"layer.tar":     layer,
	}
	if diff := cmp.Diff(want, files); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string][]byte{"test": []byte("program")}, readTar(t, bytes.NewReader(layer))); diff != "" {
		t.Errorf("layer (-want +got):\n%s", diff)
	}
}

func readTar(t *testing.T, r io.Reader) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for archive := tar.NewReader(r); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		expect.NoError(t, err)
		if files[header.Name], err = io.ReadAll(archive); err != nil {
			t.Fatal(err)
		}
	}
}

func mustJSON(t *testing.T, value any) []byte {
	t.Helper()
	data, err := json.Marshal(value)
	expect.NoError(t, err)
	return data
}
