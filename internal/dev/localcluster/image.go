// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed" // the source of the pause program
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
)

// PauseImage is the image that keeps pods' namespaces open. Every full node has it, and tests use
// it as a container that does nothing.
const PauseImage = "local/pause:1"

//go:embed pause/main.go
var pauseSource []byte

// buildPauseImage builds the pause program and writes it as an image archive.
func buildPauseImage(ctx context.Context, out string) error {
	dir, err := os.MkdirTemp("", "localcluster-pause-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := os.WriteFile(filepath.Join(dir, "main.go"), pauseSource, 0o644); err != nil {
		return err
	}
	if _, err := runGo(ctx, dir, "build", "-ldflags", "-s -w", "-o", "pause", "main.go"); err != nil {
		return err
	}
	program, err := os.ReadFile(filepath.Join(dir, "pause"))
	if err != nil {
		return err
	}
	var archive bytes.Buffer
	if err := writeImage(&archive, PauseImage, "pause", program); err != nil {
		return err
	}
	return os.WriteFile(out, archive.Bytes(), 0o644)
}

// writeImage writes a docker archive of an image that runs one static program. The output is
// reproducible.
func writeImage(w io.Writer, image, name string, program []byte) error {
	var layer bytes.Buffer
	if err := writeTar(&layer, tarFile{name: name, mode: 0o755, content: program}); err != nil {
		return err
	}
	config, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH,
		"os":           "linux",
		"config":       map[string]any{"Entrypoint": []string{"/" + name}},
		"rootfs":       map[string]any{"type": "layers", "diff_ids": []string{fmt.Sprintf("sha256:%x", sha256.Sum256(layer.Bytes()))}},
	})
	if err != nil {
		return err
	}
	configName := fmt.Sprintf("%x.json", sha256.Sum256(config))
	manifest, err := json.Marshal([]map[string]any{
		{"Config": configName, "RepoTags": []string{image}, "Layers": []string{"layer.tar"}},
	})
	if err != nil {
		return err
	}
	return writeTar(w,
		tarFile{name: "manifest.json", mode: 0o644, content: manifest},
		tarFile{name: configName, mode: 0o644, content: config},
		tarFile{name: "layer.tar", mode: 0o644, content: layer.Bytes()})
}

type tarFile struct {
	name    string
	mode    int64
	content []byte
}

func writeTar(w io.Writer, files ...tarFile) error {
	archive := tar.NewWriter(w)
	for _, f := range files {
		if err := archive.WriteHeader(&tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.content))}); err != nil {
			return err
		}
		if _, err := archive.Write(f.content); err != nil {
			return err
		}
	}
	return archive.Close()
}

// Load imports the images of an uncompressed OCI or docker archive into the node, and returns what
// containerd says of them. Names of images need a registry, such as localhost.
func (c *Cluster) Load(ctx context.Context, archive string) (string, error) {
	if c.spec.onLoopback() {
		return "", fmt.Errorf("cluster %q has no images to load %s into: its nodes run processes", c.spec.Name, archive)
	}
	file, err := os.Open(archive)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	args := c.spec.ctr("images", "import", "-")
	cmd := c.Command(ctx, args[0], args[1:]...)
	cmd.Stdin = file
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("cannot load %s: %w\n%s", archive, err, lastLines(string(out), 10))
	}
	return string(out), nil
}
