// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command chart writes config/chart/templates/generated, from which Helm installs the operator.
// `make chart` runs it, in the root of the repository.
//
// kustomize builds config/default without and with each setting of settings.yaml: a component of
// config/components, or some patches. Lines that differ get the condition of the setting. Patches contain
// expressions of templates: helm(.Values.replicas) as a value, or {helm: toYaml .Values.resources} as a
// field or an item whose place the lines of the expression take.
//
// Two settings that change the same field need an expression in its place. internal/test/chart compares
// what Helm and kustomize render. All other files of config/chart are written by hand.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if err := run("."); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(root string) error {
	files, err := generate(filepath.Join(root, "config"))
	if err != nil {
		return err
	}
	folder := filepath.Join(root, "config", "chart", "templates", "generated")
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	for name, content := range files {
		file := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			return err
		}
	}
	return nil
}
