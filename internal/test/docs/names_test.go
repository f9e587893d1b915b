// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/cli/cmd"
	"github.com/conversion-operator/conversion-operator/internal/test/expect"
)

// others are names of other projects on the pages.
var others = strings.Fields(`
	--all --create-namespace --dry-run --enable-aggregator-routing --field-selector --force --force-conflicts --force-replace --include-crds --no-hooks --node-monitor-grace-period --override-manager
	--selector --server-side --skip-crds --subresource --timeout --wait --watch -p -w
	spec.ignore spec.upgrade.crds spec.upgrade.force spec.upgrade.serverSideApply spec.patches spec.wait spec.healthChecks spec.secretName
	spec.install.crds spec.install.preflight.crdUpgradeSafety.enforcement spec.dependsOn spec.healthCheckExprs spec.paramKind status.resources spec.config.env
	False Cg AllNamespaces Applications Create CreateReplace OutOfSync Skip Unknown Synced Healthy Progressing Degraded Missing Suspended
	ContentDeletionFailed Established InvalidCABundle InternalError Terminating CustomResourceDefinition ConversionReview ConversionWebhook
	ClusterIssuer Issuer Certificate StorageVersionMigrator StorageError IfNotPresent Merge Current InProgress Failed
	Backup Ignore Metadata OwnerReferencesPermissionEnforcement EnableAPIGroupVersions
`)

// TestNames: names in code spans exist: fields, flags, commands, conditions, reasons, kinds,
// metrics, and names in the operator's domain.
func TestNames(t *testing.T) {
	literals := literalsOf(t)
	commands := cmd.NewRootCommand()
	flags := flagsOf(commands)
	fields := fieldsOf(reflect.TypeFor[v1alpha1.ConversionPolicy]())
	maps.Copy(fields, fieldsOf(reflect.TypeFor[v1alpha1.ConverterFleet]()))
	maps.Copy(fields, fieldsOf(reflect.TypeFor[apiextensionsv1.CustomResourceDefinition]()))
	metrics := metricsOf(t)
	checks := []struct {
		what    string
		pattern *regexp.Regexp
		known   func(string) bool
	}{
		{"field", regexp.MustCompile(`^(spec|status)\.[\w.\[\]]+$`), func(name string) bool {
			return fields[strings.ReplaceAll(name, "[]", "")]
		}},
		{"flag", regexp.MustCompile(`^--?[a-z][\w-]*$`), func(name string) bool { return flags[name] }},
		{"command", regexp.MustCompile(`^conversion-operator [a-z].*$`), func(line string) bool { return tryCommand(cmd.NewRootCommand(), line) == nil }},
		{"word", regexp.MustCompile(`^[A-Z][a-z]+([A-Z][a-z]*)*$`), func(word string) bool { return literals[word] }},
		{"metric", regexp.MustCompile(`^conversion_(operator|converter|migration)_\w+$`), func(name string) bool { return metrics[name] }},
		{"name", regexp.MustCompile(`^[\w-]*\.?conversion-operator\.io/[a-z-]+$`), func(name string) bool { return literals[name] }},
	}
	seen := map[string]int{}
	for _, page := range all(t) {
		for _, span := range page.CodeSpans() {
			for _, check := range checks {
				if !check.pattern.MatchString(span.Text) {
					continue
				}
				seen[check.what]++
				name, _, _ := strings.Cut(span.Text, "=")
				if !check.known(span.Text) && !slices.Contains(others, name) {
					t.Errorf("%s:%d: no one knows the %s %s", page.Path, span.Line, check.what, span.Text)
				}
			}
		}
	}
	for _, check := range checks {
		expect.Equal(t, "a "+check.what+" was found", true, seen[check.what] > 0)
	}
}

// TestCommands: the operator's commands in code blocks exist, with their flags.
func TestCommands(t *testing.T) {
	found := 0
	for _, page := range all(t) {
		for _, block := range page.Blocks {
			if block.Language == "text" {
				continue // prose
			}
			for line := range strings.Lines(block.Text) {
				line = strings.TrimPrefix(strings.TrimSpace(line), prompt)
				if plugin, ok := strings.CutPrefix(line, "kubectl conversion "); ok {
					line = "conversion-operator " + plugin
				}
				if !strings.HasPrefix(line, "conversion-operator ") {
					continue
				}
				found++
				if err := tryCommand(cmd.NewRootCommand(), line); err != nil {
					t.Errorf("%s, block of line %d: %s: %v", page.Path, block.Line, line, err)
				}
			}
		}
	}
	if found < 3 {
		t.Errorf("only %d commands were found", found)
	}
}

// tryCommand returns an error if the command or one of its flags does not exist.
func tryCommand(command *cobra.Command, line string) error {
	line, _, _ = strings.Cut(line, " | ")
	found, rest, err := command.Find(strings.Fields(line)[1:])
	if err != nil {
		return err
	}
	var flags []string
	for i, word := range rest {
		// The name is enough to find the flag, also without its value.
		if name, _, _ := strings.Cut(word, "="); strings.HasPrefix(word, "-") && len(word) > 1 {
			flags = append(flags, name)
			continue
		}
		if i == 0 && found.HasSubCommands() {
			return &pflag.NotExistError{}
		}
	}
	for _, name := range flags {
		if !flagsOf(found)[name] {
			return fmt.Errorf("there is no flag %s", name)
		}
	}
	return nil
}

// flagsOf returns the flags of a command, of its parents and of its subcommands.
func flagsOf(command *cobra.Command) map[string]bool {
	flags := map[string]bool{"--help": true, "-h": true, "--version": true}
	add := func(flag *pflag.Flag) {
		flags["--"+flag.Name] = true
		flags["-"+flag.Shorthand] = true
	}
	command.Flags().VisitAll(add)
	command.InheritedFlags().VisitAll(add)
	for _, part := range command.Commands() {
		maps.Copy(flags, flagsOf(part))
	}
	return flags
}

// fieldsOf returns the JSON paths of a type's fields.
func fieldsOf(kind reflect.Type) map[string]bool {
	fields := map[string]bool{}
	addFields(fields, "", kind, 0)
	return fields
}

// depth exceeds that of any path on the pages. Schemas are recursive.
const depth = 8

func addFields(fields map[string]bool, prefix string, kind reflect.Type, level int) {
	for kind.Kind() == reflect.Pointer || kind.Kind() == reflect.Slice || kind.Kind() == reflect.Map {
		kind = kind.Elem()
	}
	if kind.Kind() != reflect.Struct || level > depth || kind == reflect.TypeFor[apiextensionsv1.JSONSchemaProps]() {
		return
	}
	for field := range kind.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if field.Anonymous && name == "" {
			addFields(fields, prefix, field.Type, level)
			continue
		}
		fields[prefix+name] = true
		addFields(fields, prefix+name+".", field.Type, level+1)
	}
}

// literalsOf returns the string literals in the operator's code, and the names of its types.
func literalsOf(t *testing.T) map[string]bool {
	t.Helper()
	literals := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains([]string{"bin", ".git", "test", "bench"}, entry.Name()):
			return fs.SkipDir
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(node ast.Node) bool {
			switch node := node.(type) {
			case *ast.BasicLit:
				if text, err := strconv.Unquote(node.Value); err == nil {
					literals[text] = true
				}
			case *ast.TypeSpec:
				literals[node.Name.Name] = true
			}
			return true
		})
		return nil
	})
	expect.NoError(t, err)
	return literals
}

// metricsOf returns the names in the tables of the metrics page, which tests generate from the
// code.
func metricsOf(t *testing.T) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, Folder, "metrics.md"))
	expect.NoError(t, err)
	metrics := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(\\w+)").FindAllStringSubmatch(string(text), -1) {
		metrics[row[1]] = true
	}
	return metrics
}
