// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"context"
	"fmt"
	"os"
)

// Load imports the images of an uncompressed OCI or docker archive into the node, and returns what
// containerd says of them. Names of images need a registry, such as localhost.
func (c *Cluster) Load(ctx context.Context, archive string) (string, error) {
	if c.spec.ControlPlaneOnly {
		return "", fmt.Errorf("cluster %q has no node to load %s into: it is a control plane only", c.spec.Name, archive)
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
