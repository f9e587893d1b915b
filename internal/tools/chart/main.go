// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	options := options{}
	flag.StringVar(&options.root, "root", ".", "directory of the repository")
	flag.StringVar(&options.output, "output", "config/chart", "directory of the chart, whose generated files are replaced")
	flag.StringVar(&options.version, "version", "", "version of the operator and the chart, without v; by default that of config/manifests/bases")
	flag.Parse()
	if err := options.run(); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

type options struct {
	root, output, version string
}

func (o options) run() error {
	files, err := o.render()
	if err != nil {
		return err
	}
	return files.write(o.output)
}

// render returns the generated files of the chart.
func (o options) render() (files, error) {
	result, err := templates(filepath.Join(o.root, "config"))
	if err != nil {
		return nil, err
	}
	result["Chart.yaml"], err = chartFile(filepath.Join(o.root, "config", "manifests", "bases", "conversion-operator.clusterserviceversion.yaml"), o.version)
	return result, err
}

// files are the generated files by path, with slashes.
type files map[string][]byte

// handWritten are the folders of templates without generated files.
var handWritten = map[string]bool{"hooks": true}

// write replaces the generated files of a chart.
func (f files) write(dir string) error {
	folders, err := os.ReadDir(filepath.Join(dir, "templates"))
	if err != nil {
		return err
	}
	for _, folder := range folders {
		if folder.IsDir() && !handWritten[folder.Name()] {
			if err := os.RemoveAll(filepath.Join(dir, "templates", folder.Name())); err != nil {
				return err
			}
		}
	}
	for name, content := range f {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, content, 0o644); err != nil {
			return err
		}
	}
	return nil
}
