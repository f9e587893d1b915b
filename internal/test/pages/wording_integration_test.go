//go:build integration

// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"regexp"
	"testing"

	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// The page has the texts of Kubernetes 1.37, and says what API servers before it
// leave out of them: that an object which cannot be converted cannot be decoded.
var before137 = []struct {
	text    *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(` \(InternalError\): … conversion webhook`), ": conversion webhook"},
	{regexp.MustCompile(` \(InternalError\): …`), ": …"},
	{regexp.MustCompile(`(?: \(StorageReadError\))?: failed to read one or more \S+ from the storage: StorageError: corrupt object, .*?conversion webhook`), ": conversion webhook"},
}

// wordingOf returns what an API server makes of a text of the page.
func wordingOf(t *testing.T, config *rest.Config) func(string) string {
	t.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(config)
	expect.NoError(t, err)
	server, err := client.ServerVersion()
	expect.NoError(t, err)
	parsed, err := version.ParseSemantic(server.GitVersion)
	expect.NoError(t, err)
	return func(text string) string {
		if parsed.AtLeast(version.MustParseSemantic("v1.37.0-alpha.0")) {
			return text
		}
		for _, change := range before137 {
			text = change.text.ReplaceAllString(text, change.instead)
		}
		return text
	}
}
