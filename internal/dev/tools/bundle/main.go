// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	options := options{}
	flag.StringVar(&options.root, "root", ".", "directory of the repository")
	flag.StringVar(&options.output, "output", "", "directory to write the bundle to, which is emptied first")
	flag.StringVar(&options.image, "image", "", "the operator's image, best by its digest; by default what config/manager names")
	flag.StringVar(&options.version, "version", "", "version of the operator, without v; by default that of the base")
	flag.StringVar(&options.replaces, "replaces", "", "version that this one replaces, without v; none by default")
	flag.Parse()
	if err := options.run(); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

type options struct {
	root, output             string
	image, version, replaces string
}

func (o options) run() error {
	files, err := o.render()
	if err != nil {
		return err
	}
	return files.write(o.output)
}

// render returns the bundle's files.
func (o options) render() (files, error) {
	source, err := readSource(o.root, o.image)
	if err != nil {
		return nil, err
	}
	csv := source.base
	if err := o.name(csv); err != nil {
		return nil, err
	}
	rest := source.install(csv)
	if err := source.describe(csv); err != nil {
		return nil, err
	}
	result, err := manifests(rest)
	if err != nil {
		return nil, err
	}
	if result["manifests/"+packageName+".clusterserviceversion.yaml"], err = encodeCSV(csv); err != nil {
		return nil, err
	}
	result["metadata/annotations.yaml"] = annotationsFile()
	result["bundle.Dockerfile"] = dockerfile()
	result["tests/scorecard/config.yaml"] = source.scorecard
	return result, nil
}
