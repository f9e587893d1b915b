// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
)

// packageName is the operator's name in catalogues.
const packageName = "conversion-operator"

// annotation is an annotation of the bundle, and a label of its image.
type annotation struct{ key, value string }

// annotations describe the layout of the bundle, and its channel.
var annotations = []annotation{
	{"operators.operatorframework.io.bundle.mediatype.v1", "registry+v1"},
	{"operators.operatorframework.io.bundle.manifests.v1", "manifests/"},
	{"operators.operatorframework.io.bundle.metadata.v1", "metadata/"},
	{"operators.operatorframework.io.bundle.package.v1", packageName},
	{"operators.operatorframework.io.bundle.channels.v1", "candidate"},
	{"operators.operatorframework.io.bundle.channel.default.v1", "candidate"},
	{"operators.operatorframework.io.metrics.mediatype.v1", "metrics+v1"},
	{"operators.operatorframework.io.metrics.project_layout", "go.kubebuilder.io/v4"},
	{"operators.operatorframework.io.test.mediatype.v1", "scorecard+v1"},
	{"operators.operatorframework.io.test.config.v1", "tests/scorecard/"},
}

func annotationsFile() []byte {
	text := strings.Builder{}
	text.WriteString(generated + "annotations:\n")
	for _, each := range annotations {
		fmt.Fprintf(&text, "  %s: %s\n", each.key, each.value)
	}
	return []byte(text.String())
}

// dockerfile returns the Dockerfile of the bundle's image. Its context is the bundle's directory.
func dockerfile() []byte {
	text := strings.Builder{}
	text.WriteString(generated + "FROM scratch\n")
	for _, each := range annotations {
		fmt.Fprintf(&text, "LABEL %s=%s\n", each.key, each.value)
	}
	text.WriteString("# Whatever the umask was, anybody may read them.\n")
	for _, folder := range []string{"manifests", "metadata", "tests/scorecard"} {
		fmt.Fprintf(&text, "COPY --chmod=0644 %s/* /%s/\n", folder, folder)
	}
	return []byte(text.String())
}
