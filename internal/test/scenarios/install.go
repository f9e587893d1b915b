// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package scenarios

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// PropagationDelay is long enough for the API servers of tests, even if they are busy.
const PropagationDelay = 5 * time.Second

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

// Install installs the operator with the image that E2E_IMAGE names, and with a propagation delay.
func Install(ctx context.Context, t *Teller, propagation time.Duration) error {
	const deployment = "deployment/conversion-operator"
	t.Title("Installing conversion-operator")
	t.Show(ctx, "kubectl", "apply", "-k", "config/default")
	if image := os.Getenv("E2E_IMAGE"); image != "" && image != "localhost/conversion-operator:dev" {
		t.Show(ctx, "kubectl", "-n", "conversion-system", "set", "image", deployment, "manager="+image)
		t.Must(ctx, "kubectl", "-n", "conversion-system", "set", "env", deployment, "CONVERSION_OPERATOR_IMAGE="+image)
	}
	t.Say("A migration first lets writes in the old storage version drain: for two minutes, unless the manager is told")
	t.Say("otherwise. No other client writes to this cluster, so that %s do.", propagation)
	t.Show(ctx, "kubectl", "-n", "conversion-system", "patch", deployment, "--type=json",
		"-p", fmt.Sprintf(`[{"op":"add","path":"/spec/template/spec/containers/0/args/-","value":"--propagation-delay=%s"}]`, propagation))
	t.Show(ctx, "kubectl", "-n", "conversion-system", "rollout", "status", deployment, patience)

	// A rollout finishes before the previous managers are gone, and until then one of them may still lead.
	ending := t.Must(ctx, "kubectl", "-n", "conversion-system", "get", "pods", "-l", "app.kubernetes.io/component=manager",
		"-o", "go-template={{range .items}}{{if .metadata.deletionTimestamp}}pod/{{.metadata.name}} {{end}}{{end}}")
	if names := strings.Fields(ending); len(names) > 0 {
		t.Must(ctx, append([]string{"kubectl", "-n", "conversion-system", "wait", "--for=delete", patience}, names...)...)
	}
	return t.Failure()
}
