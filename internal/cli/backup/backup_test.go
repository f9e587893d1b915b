// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// entry is an entry of an archive: a file, or a folder if its name ends with a slash.
type entry struct {
	name, text string
	change     func(*tar.Header)
}

// pack returns a backup with these entries.
func pack(t *testing.T, entries ...entry) []byte {
	t.Helper()
	var text bytes.Buffer
	compressed := gzip.NewWriter(&text)
	archive := tar.NewWriter(compressed)
	for _, e := range entries {
		header := &tar.Header{Name: e.name, Size: int64(len(e.text)), Typeflag: tar.TypeReg, Mode: 0o755, ModTime: time.Unix(1000, 0)}
		if strings.HasSuffix(e.name, "/") {
			header.Typeflag = tar.TypeDir
		}
		if e.change != nil {
			e.change(header)
		}
		expect.NoError(t, archive.WriteHeader(header))
		_, err := archive.Write([]byte(e.text))
		expect.NoError(t, err)
	}
	expect.NoError(t, errors.Join(archive.Close(), compressed.Close()))
	return text.Bytes()
}

// unpack returns the names and texts of a backup, in order.
func unpack(t *testing.T, text []byte) (found []string) {
	t.Helper()
	compressed, err := gzip.NewReader(bytes.NewReader(text))
	expect.NoError(t, err)
	archive := tar.NewReader(compressed)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		expect.NoError(t, err)
		expect.Equal(t, "mode of "+header.Name, 0o755, header.Mode)
		expect.Equal(t, "time of "+header.Name, time.Unix(1000, 0), header.ModTime)
		content, err := io.ReadAll(archive)
		expect.NoError(t, err)
		found = append(found, header.Name+" "+string(content))
	}
}

// toV2 is a conversion that replaces a word.
func toV2() *Conversion {
	return &Conversion{Resource: "crontabs.example.com", To: "v2", Convert: func(object []byte) ([]byte, error) {
		if bytes.Contains(object, []byte("bad")) {
			return nil, errors.New("no conversion")
		}
		return bytes.ReplaceAll(object, []byte("v1"), []byte("v2, longer")), nil
	}}
}

// TestRun converts the layout of Velero: objects with and without a namespace, in the folder without
// a version and in that of the preferred one. Everything else stays, also the folders of other
// versions and of resources with similar names.
func TestRun(t *testing.T) {
	long := strings.Repeat("x", 110) // with another folder, it no longer fits a plain header
	in := pack(t,
		entry{name: "metadata/version", text: "1.1.0\n"},
		entry{name: "resources/crontabs.example.com/namespaces/a/one.json", text: "v1 one"},
		entry{name: "resources/crontabs.example.com/v1-preferredversion/namespaces/a/one.json", text: "v1 one"},
		entry{name: "resources/crontabs.example.com/v1alpha1/namespaces/a/one.json", text: "v1alpha1 one"},
		entry{name: "resources/crontabs.example.com/cluster/two.json", text: "v2 two"},
		entry{name: "./resources/crontabs.example.com/v1-preferredversion/", text: ""},
		entry{name: "./resources/crontabs.example.com/v1-preferredversion/cluster/" + long + ".json", text: "v1 long"},
		entry{name: "resources/crontabs.example.com/namespaces/a/notes.txt", text: "v1 notes"},
		entry{name: "resources/crontabs.example.com.other/namespaces/a/one.json", text: "v1 other"},
		entry{name: "resources/pods/v1-preferredversion/namespaces/a/one.json", text: "v1 pod"},
	)
	var out bytes.Buffer
	result, err := toV2().Run(&out, bytes.NewReader(in))
	expect.NoError(t, err)
	want := []string{
		"metadata/version 1.1.0\n",
		"resources/crontabs.example.com/namespaces/a/one.json v2, longer one",
		"resources/crontabs.example.com/v2-preferredversion/namespaces/a/one.json v2, longer one",
		"resources/crontabs.example.com/v1alpha1/namespaces/a/one.json v1alpha1 one",
		"resources/crontabs.example.com/cluster/two.json v2 two",
		"./resources/crontabs.example.com/v2-preferredversion/ ",
		"./resources/crontabs.example.com/v2-preferredversion/cluster/" + long + ".json v2, longer long",
		"resources/crontabs.example.com/namespaces/a/notes.txt v1 notes",
		"resources/crontabs.example.com.other/namespaces/a/one.json v1 other",
		"resources/pods/v1-preferredversion/namespaces/a/one.json v1 pod",
	}
	expect.Equal(t, "entries", want, unpack(t, out.Bytes()))
	expect.Equal(t, "counts and problems", "1 1 5 []", fmt.Sprint(result.Converted, result.Current, result.Others, result.Problems))

	// A second run changes nothing.
	var again bytes.Buffer
	result, err = toV2().Run(&again, bytes.NewReader(out.Bytes()))
	expect.NoError(t, err)
	expect.Equal(t, "entries", want, unpack(t, again.Bytes()))
	expect.Equal(t, "converted and current", "0 2", fmt.Sprint(result.Converted, result.Current))
}

// TestRunProblems lists the objects that cannot be converted, and bounds the list.
func TestRunProblems(t *testing.T) {
	var entries []entry
	for range maxProblems + 3 {
		entries = append(entries, entry{name: "resources/crontabs.example.com/cluster/a.json", text: "bad"})
	}
	result, err := toV2().Run(io.Discard, bytes.NewReader(pack(t, entries...)))
	expect.NoError(t, err)
	expect.Equal(t, "problems, and more", []int{maxProblems, 3}, []int{len(result.Problems), result.More})
	expect.Equal(t, "the first problem", "resources/crontabs.example.com/cluster/a.json: no conversion", result.Problems[0].Error())
}

func TestRunRefuses(t *testing.T) {
	const object = "resources/crontabs.example.com/namespaces/a/one.json"
	whole := pack(t, entry{name: object, text: "v1 one"}, entry{name: "resources/pods/namespaces/a/one.json", text: strings.Repeat("pod ", 3000)})
	corrupt := bytes.Clone(whole)
	corrupt[len(corrupt)-6]++ // in the checksum
	typed := func(kind byte) func(*tar.Header) {
		return func(h *tar.Header) { h.Typeflag, h.Linkname, h.Size = kind, "/etc/passwd", 0 }
	}
	for name, test := range map[string]struct {
		in   []byte
		want string
	}{
		"no archive":           {[]byte("apiVersion: v1"), "decompress the backup"},
		"another content":      {gzipped(t, strings.Repeat("apiVersion: v1\n", 100)), "read the backup"},
		"an end in its middle": {whole[:len(whole)-30], "unexpected EOF"},
		"a wrong checksum":     {corrupt, "read the end of the backup"},
		"no backup":            {pack(t, entry{name: "a.json", text: "{}"}), "not a backup of Velero"},
		"a path upwards":       {pack(t, entry{name: "resources/../../a.json"}), `"resources/../../a.json" in the backup: the name leads out`},
		"a path from the root": {pack(t, entry{name: "/resources/a.json"}), "the name leads out"},
		"a detour":             {pack(t, entry{name: "resources/a/../crontabs.example.com/cluster/a.json"}), "not in its simplest form"},
		"a symbolic link":      {pack(t, entry{name: object, change: typed(tar.TypeSymlink)}), "neither a file nor a folder"},
		"a hard link":          {pack(t, entry{name: object, change: typed(tar.TypeLink)}), "neither a file nor a folder"},
		"a device":             {pack(t, entry{name: "resources/a", change: typed(tar.TypeChar)}), "neither a file nor a folder"},
		"two preferred versions": {pack(t,
			entry{name: "resources/crontabs.example.com/v1-preferredversion/cluster/a.json", text: "v1"},
			entry{name: "resources/crontabs.example.com/v2-preferredversion/cluster/a.json", text: "v2"}), "two preferred versions of crontabs.example.com"},
		"a huge object": {pack(t, entry{name: object, text: strings.Repeat(" ", maxObjectBytes+1)}), "larger than"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := toV2().Run(io.Discard, bytes.NewReader(test.in))
			expect.Contains(t, "the error", fmt.Sprint(err), test.want)
		})
	}
}

func gzipped(t *testing.T, text string) []byte {
	t.Helper()
	var out bytes.Buffer
	compressed := gzip.NewWriter(&out)
	_, err := io.WriteString(compressed, text)
	expect.NoError(t, errors.Join(err, compressed.Close()))
	return out.Bytes()
}

// TestRunCannotWrite ends with the error of the writer.
func TestRunCannotWrite(t *testing.T) {
	in := pack(t, entry{name: "resources/pods/cluster/a.json", text: "{}"})
	if _, err := toV2().Run(full{}, bytes.NewReader(in)); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("no space: %v", err)
	}
}

// full is a disk without space.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, io.ErrShortWrite }
