// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rewrite converts the objects in manifests where they stand: only the bytes of fields
// that change are different afterwards. Comments, the order of fields, quotes, anchors, indentation
// and line breaks stay. It is pure: it reads and returns texts.
//
// A Rewriter (rewriter.go) finds the objects of a policy's kind in a text (documents.go).
// It converts each (object.go) so that an API server gets from the new manifest what its conversion
// webhook makes of the old one. Patches of kustomize are parts of objects (kustomize.go, patch.go),
// and actions of Helm's templates are hidden from the parser (template.go). An explanation of the conversion tells which value became which (origins.go). The
// places of values come from the YAML parser (tree.go, lines.go). An editor (edit.go; block.go,
// flow.go, style.go) writes the text again: values that stay keep their bytes, also where their
// name or their parent changes.
//
// Every result is parsed again. If its values are not exactly those of the converted object, the
// object keeps its old text, and the result says so. So a mistake in finding places cannot change
// the meaning of a manifest.
package rewrite
