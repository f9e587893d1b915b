// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// Load imports the images of an uncompressed OCI or docker archive into the node, and returns their
// names. It rejects an archive without image names, or with names that pods cannot refer to,
// because containerd would import it without an error.
func (c *Cluster) Load(ctx context.Context, archive string) ([]string, error) {
	if c.spec.ControlPlaneOnly {
		return nil, fmt.Errorf("cluster %q has no node to load %s into: it is a control plane only", c.spec.Name, archive)
	}
	file, err := os.Open(archive)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	names, err := imageNames(file)
	if err != nil {
		return nil, fmt.Errorf("cannot load %s: %w", archive, err)
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	args := c.spec.ctr("images", "import", "-")
	cmd := c.Command(ctx, args[0], args[1:]...)
	cmd.Stdin = file
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("cannot load %s: %w\n%s", archive, err, lastLines(string(out), 10))
	}
	return names, nil
}

// imageNames reads the names from manifest.json of the docker format, or index.json of the OCI
// image layout.
func imageNames(r io.Reader) ([]string, error) {
	var names []string
	for archive := tar.NewReader(r); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) && len(names) > 0 {
			return names, nil
		}
		if errors.Is(err, io.EOF) {
			return nil, errors.New("no image in it has a name: write the archive with one, " +
				"such as oci-archive:FILE:localhost/NAME:TAG")
		}
		if err != nil {
			return nil, fmt.Errorf("not an uncompressed OCI or docker archive: %w", err)
		}
		found, err := namesIn(strings.TrimPrefix(header.Name, "./"), archive)
		if err != nil {
			return nil, err
		}
		names = append(names, found...)
	}
}

// namesIn returns the names in one file of an archive, if any.
func namesIn(file string, content io.Reader) ([]string, error) {
	switch file {
	case "manifest.json":
		return dockerNames(content)
	case "index.json":
		return ociNames(content)
	}
	return nil, nil
}

func dockerNames(content io.Reader) ([]string, error) {
	var images []struct{ RepoTags []string }
	if err := json.NewDecoder(content).Decode(&images); err != nil {
		return nil, fmt.Errorf("manifest.json is damaged: %w", err)
	}
	var names []string
	for _, image := range images {
		names = append(names, image.RepoTags...)
	}
	return names, nil
}

// ociNames requires names with a registry: containerd accepts other names unchanged in this format,
// but pods only refer to full names.
func ociNames(content io.Reader) ([]string, error) {
	var index struct {
		Manifests []struct{ Annotations map[string]string }
	}
	if err := json.NewDecoder(content).Decode(&index); err != nil {
		return nil, fmt.Errorf("index.json is damaged: %w", err)
	}
	var names []string
	for _, manifest := range index.Manifests {
		name := firstOf(manifest.Annotations["io.containerd.image.name"], manifest.Annotations["org.opencontainers.image.ref.name"])
		registry, _, found := strings.Cut(name, "/")
		if name != "" && (!found || registry != "localhost" && !strings.ContainsAny(registry, ".:")) {
			return nil, fmt.Errorf("the image %s has no registry in its name, so no pod could use it: "+
				"call it localhost/%s", name, name)
		}
		if name != "" {
			names = append(names, name)
		}
	}
	return names, nil
}
