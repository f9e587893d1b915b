// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/conversion-operator/conversion-operator/internal/conversion"
	"github.com/conversion-operator/conversion-operator/internal/manifest"
)

// convertOptions are the flags of the convert command.
type convertOptions struct {
	definitions definitions
	to          string
	files       []string
	output      string
}

func newConvertCommand() *cobra.Command {
	options := convertOptions{}
	command := &cobra.Command{
		Use:   "convert [POLICY]",
		Short: "Convert objects in files to another version",
		Long: `Convert objects in files to another version, as the converter pods of a policy would.

Objects come from files, directories and stdin, in YAML or JSON, several in a
file, and as items of lists. The output has the format of the input: JSON keeps
its bytes where no rule changes them, numbers keep their text. Comments of YAML
are lost. If a file has several policies, POLICY is the name of one of them.

Exit codes:
  0  all objects were converted
  1  an object cannot be converted; the command wrote nothing to stdout
  2  a flag is wrong, a file cannot be read, or the policy is not valid`,
		Example: `  conversion-operator convert --policy policy.yaml --crd crd.yaml --to v1 -f objects.yaml
  kubectl get crontabs -A -o json | conversion-operator convert --policy policy.yaml --crd crd.yaml --to v1`,
	}
	flags := command.Flags()
	options.definitions.addFlags(flags)
	flags.StringVar(&options.to, "to", "", "version to convert to, for example v1")
	flags.StringArrayVarP(&options.files, "filename", "f", nil, "file or directory of objects, - for stdin; can be given several times; default stdin")
	flags.StringVarP(&options.output, "output", "o", "", "output format: yaml or json; default that of the input")
	return forUsers(command, cobra.MaximumNArgs(1), func(command *cobra.Command, args []string) error {
		return options.run(command.Context(), strings.Join(args, ""), command.InOrStdin(), command.OutOrStdout())
	})
}

func (o *convertOptions) run(ctx context.Context, name string, stdin io.Reader, stdout io.Writer) error {
	if err := o.validate(stdin); err != nil {
		return err
	}
	policy, crd, err := o.definitions.read(ctx, name, nil)
	if err != nil {
		return err
	}
	result, err := compileRules(policy, crd)
	if err != nil {
		return err
	}
	if !slices.Contains(result.Ruleset.Versions, o.to) {
		return fmt.Errorf("--to must be one of %s, is %q", strings.Join(result.Ruleset.Versions, ", "), o.to)
	}
	converter, err := conversion.NewConverter(result.Ruleset)
	if err != nil {
		return err
	}
	documents, err := manifest.ReadAll(o.files, stdin)
	if err != nil {
		return err
	}
	if len(documents) == 0 {
		return fmt.Errorf("there are no objects in %s", sourcesOf(o.files))
	}
	if err := o.convert(converter, result.Ruleset, documents); err != nil {
		return &exitError{exitFound, err}
	}
	return manifest.Write(stdout, manifest.Form(o.output), documents)
}

func (o *convertOptions) validate(stdin io.Reader) error {
	switch {
	case o.to == "":
		return errors.New("--to is required: the version to convert to, for example v1")
	case !slices.Contains([]string{"", string(manifest.JSON), string(manifest.YAML)}, o.output):
		return fmt.Errorf("--output must be yaml or json, is %q", o.output)
	case len(o.files) == 0 && isTerminal(stdin):
		return errors.New("there are no objects to convert: name a file with -f, or pipe them in")
	case len(o.files) == 0:
		o.files = []string{manifest.Stdin}
	}
	return nil
}

// convert replaces all objects, and returns the errors of all that it cannot convert.
func (o *convertOptions) convert(converter *conversion.Converter, ruleset *conversion.Ruleset, documents []manifest.Document) error {
	var errs []error
	for i, document := range documents {
		converted, err := document.Replace(func(object manifest.Object) ([]byte, error) {
			return converter.Convert(nil, object.JSON, o.to)
		})
		if err == nil && document.IsList() && manifest.NewObject("", document.JSON).Kind == ruleset.Kind+"List" {
			// The list of one kind has the version of its items.
			converted, err = converted.SetAPIVersion(ruleset.Group + "/" + o.to)
		}
		documents[i] = converted
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// sourcesOf returns one name for all files, for messages.
func sourcesOf(files []string) string {
	names := slices.Clone(files)
	for i, name := range names {
		if name == manifest.Stdin {
			names[i] = "stdin"
		}
	}
	return strings.Join(names, ", ")
}
