// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// IsEnvelope reports whether a field of an object is the API server's.
func IsEnvelope(name string) bool {
	return name == "apiVersion" || name == "kind" || name == "metadata"
}

// IsLabel reports whether a path leads to a label.
func (p Path) IsLabel() bool { return len(p) > 1 && p[0] == "metadata" && p[1] == "labels" }

// CheckMetadata says why a rule cannot have a path into the metadata, nil where it can:
// it allows single labels and annotations. One whose name the API
// server refuses would make an object unreadable, and ours are not for rules.
func CheckMetadata(path Path) error {
	if len(path) > 1 && path[1] != "labels" && path[1] != "annotations" {
		return fmt.Errorf("%s is the API server's, and is the same in every version: remove the rule; of the metadata, only single labels and annotations convert", path)
	}
	if len(path) != 3 || path[2] == Each {
		return errors.New(`of the metadata, only single labels and annotations convert: write .metadata.labels["name"]`)
	}
	if strings.HasPrefix(path[2], KeptPrefix) {
		return fmt.Errorf("%s is where conversion-operator keeps fields aside: use another name", path)
	}
	name := path[2]
	if path[1] == "annotations" {
		name = strings.ToLower(name) // as the API server does with those alone
	}
	if problems := validation.IsQualifiedName(name); len(problems) > 0 {
		return fmt.Errorf("%s cannot be: %s: correct the name", path, strings.Join(problems, ", "))
	}
	return nil
}
