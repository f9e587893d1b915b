// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package krew

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/yaml"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// manifest is krew's kind Plugin, as krew reads it.
type manifest struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		Version          string     `json:"version"`
		Homepage         string     `json:"homepage"`
		ShortDescription string     `json:"shortDescription"`
		Description      string     `json:"description"`
		Caveats          string     `json:"caveats"`
		Platforms        []platform `json:"platforms"`
	} `json:"spec"`
}

type platform struct {
	Selector metav1.LabelSelector `json:"selector"`
	URI      string               `json:"uri"`
	SHA256   string               `json:"sha256"`
	Bin      string               `json:"bin"`
}

// pack packs a plugin with this content for two platforms, and returns the folder.
func pack(t *testing.T, text string) string {
	t.Helper()
	folder := t.TempDir()
	for at, name := range map[string]string{"linux-arm64": "kubectl-conversion", "windows-amd64": "kubectl-conversion.exe"} {
		err := errors.Join(os.Mkdir(filepath.Join(folder, at), 0o700), os.WriteFile(filepath.Join(folder, at, name), []byte(text), 0o700)) //nolint:gosec // a program
		expect.NoError(t, err)
	}
	packing := exec.CommandContext(t.Context(), filepath.Join("..", "..", "dev", "tools", "krew.sh"), "v1.2.3-4-gabc", "https://example.com/v1.2.3/", folder)
	packing.Env = append(os.Environ(), "SOURCE_DATE_EPOCH=1700000000")
	if said, err := packing.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	return folder
}

// TestPackage: krew accepts the manifest, which describes the archive of each platform. Each archive has the
// program and the licence, as krew requires, and is reproducible.
func TestPackage(t *testing.T) {
	first, again, other := pack(t, "a program"), pack(t, "a program"), pack(t, "another one")
	text, err := os.ReadFile(filepath.Join(first, "conversion.yaml"))
	expect.NoError(t, err)
	var got manifest
	expect.NoError(t, yaml.UnmarshalStrict(text, &got))
	if got.APIVersion != "krew.googlecontainertools.github.com/v1alpha2" || got.Kind != "Plugin" || got.Name != "conversion" {
		t.Errorf("it is a %s of %s for %s", got.Kind, got.APIVersion, got.Name)
	}
	if _, err := version.ParseSemantic(got.Spec.Version); err != nil || got.Spec.Version != "v1.2.3-4-gabc" {
		t.Errorf("the version is %q: %v", got.Spec.Version, err)
	}
	if short := got.Spec.ShortDescription; short == "" || strings.ContainsAny(short, "\r\n") || len(short) > 50 {
		t.Errorf("the short description is %q", short)
	}
	expect.Contains(t, "the caveats", got.Spec.Caveats, `"$(command -v kubectl-conversion)"`)
	var want []platform
	for _, one := range []struct{ os, arch, bin string }{{"linux", "arm64", "kubectl-conversion"}, {"windows", "amd64", "kubectl-conversion.exe"}} {
		archive := "kubectl-conversion-" + one.os + "-" + one.arch + ".tar.gz"
		sum := sumOf(t, filepath.Join(first, archive))
		want = append(want, platform{
			Selector: metav1.LabelSelector{MatchLabels: map[string]string{"os": one.os, "arch": one.arch}},
			URI:      "https://example.com/v1.2.3/" + archive, SHA256: sum, Bin: one.bin,
		})
		files := unpack(t, filepath.Join(first, archive))
		if files[one.bin] != "a program" || !strings.Contains(files["LICENSE"], "Apache License") || len(files) != 2 {
			t.Errorf("%s has %d files; the program is %q", archive, len(files), files[one.bin])
		}
		if sum != sumOf(t, filepath.Join(again, archive)) || sum == sumOf(t, filepath.Join(other, archive)) {
			t.Errorf("the sum of %s depends on something else than its program", archive)
		}
	}
	expect.Equal(t, "platforms", want, got.Spec.Platforms)
}

// unpack reads an archive. All files must be at its root, and only the program is executable.
func unpack(t *testing.T, file string) map[string]string {
	t.Helper()
	packed, err := os.ReadFile(file)
	expect.NoError(t, err)
	unzipped, err := gzip.NewReader(bytes.NewReader(packed))
	expect.NoError(t, err)
	files := map[string]string{}
	archive := tar.NewReader(unzipped)
	for {
		head, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		expect.NoError(t, err)
		text, err := io.ReadAll(archive)
		expect.NoError(t, err)
		if head.Typeflag != tar.TypeReg || path.Clean(head.Name) != path.Base(head.Name) {
			t.Errorf("%s is of type %c", head.Name, head.Typeflag)
		}
		if runs := head.Mode&0o111 == 0o111; runs == (head.Name == "LICENSE") {
			t.Errorf("%s has the mode %o", head.Name, head.Mode)
		}
		files[head.Name] = string(text)
	}
}

func sumOf(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	expect.NoError(t, err)
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
