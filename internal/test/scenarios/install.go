// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package scenarios

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
)

// Root finds the root of the checkout, above the working directory.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
	}
	return "", errors.New("no go.mod above the working directory: run this in a checkout of the project")
}

// Install installs the operator with the image that E2E_IMAGE names.
func Install(ctx context.Context, t *Teller) error {
	t.Title("Installing conversion-operator")
	if _, err := t.Show(ctx, "kubectl", "apply", "-k", "config/default"); err != nil {
		return err
	}
	const deployment = "deployment/conversion-operator"
	if image := os.Getenv("E2E_IMAGE"); image != "" && image != "localhost/conversion-operator:dev" {
		if _, err := t.Show(ctx, "kubectl", "-n", "conversion-system", "set", "image", deployment, "manager="+image); err != nil {
			return err
		}
		if _, err := t.Run(ctx, "kubectl", "-n", "conversion-system", "set", "env", deployment, "CONVERSION_OPERATOR_IMAGE="+image); err != nil {
			return err
		}
	}
	t.Say("A migration first lets writes in the old storage version drain: for two minutes, unless the manager is told")
	t.Say("otherwise. No other client writes to this cluster, so that five seconds do.")
	if _, err := t.Show(ctx, "kubectl", "-n", "conversion-system", "patch", deployment, "--type=json",
		"-p", `[{"op":"add","path":"/spec/template/spec/containers/0/args/-","value":"--propagation-delay=5s"}]`); err != nil {
		return err
	}
	if _, err := t.Show(ctx, "kubectl", "-n", "conversion-system", "rollout", "status", deployment, patience); err != nil {
		return err
	}
	return waitUntilReplaced(ctx, t)
}

// waitUntilReplaced waits until the previous manager pods are gone: a rollout finishes earlier, and
// until then one of them may still lead.
func waitUntilReplaced(ctx context.Context, t *Teller) error {
	ending, err := t.Run(ctx, "kubectl", "-n", "conversion-system", "get", "pods", "-l", "app.kubernetes.io/component=manager",
		"-o", "go-template={{range .items}}{{if .metadata.deletionTimestamp}}pod/{{.metadata.name}} {{end}}{{end}}")
	names := strings.Fields(ending)
	if err != nil || len(names) == 0 {
		return err
	}
	_, err = t.Run(ctx, append([]string{"kubectl", "-n", "conversion-system", "wait", "--for=delete", patience}, names...)...)
	return err
}
