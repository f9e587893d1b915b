// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// Install creates the objects of files in config, such as rbac/role.yaml, and returns a function that
// deletes them, the last one first.
func Install(ctx context.Context, writer client.Client, files ...string) (uninstall func(context.Context) error, err error) {
	var installed []client.Object
	uninstall = func(ctx context.Context) error {
		var errs []error
		for _, object := range slices.Backward(installed) {
			errs = append(errs, writer.Delete(ctx, object))
		}
		return errors.Join(errs...)
	}
	root, err := Root()
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		objects, err := objectsOf(filepath.Join(root, "config", filepath.FromSlash(file)))
		if err != nil {
			return nil, err
		}
		for _, object := range objects {
			if err := writer.Create(ctx, object); err != nil {
				return nil, fmt.Errorf("install %s: %w", file, err)
			}
			installed = append(installed, object)
		}
	}
	return uninstall, nil
}

// objectsOf reads the objects of a file.
func objectsOf(file string) (objects []*unstructured.Unstructured, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		object := &unstructured.Unstructured{}
		if err == nil {
			err = yaml.Unmarshal(document, &object.Object)
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
		if len(object.Object) > 0 { // it is more than a comment
			objects = append(objects, object)
		}
	}
}
