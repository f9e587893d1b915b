// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/conversion-operator/conversion-operator/internal/cli/backup"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
	"github.com/conversion-operator/conversion-operator/internal/engine/manifest"
)

// convertOptions are the flags of the convert command.
type convertOptions struct {
	definitions definitions
	ruleset     string
	to          string
	files       []string
	output      string
}

func newConvertCommand() *cobra.Command {
	options := convertOptions{}
	command := &cobra.Command{
		Use:   "convert [POLICY]",
		Short: "Convert objects in files, or in a backup, to another version",
		Long: `Convert objects in files, or in a backup, to another version, as the converter pods of
a policy would.

Objects come from files, directories and stdin, in YAML or JSON, several in a
file, and as items of lists. Objects of other kinds do not change. The output has the
format of the input: JSON keeps its bytes where no rule changes them, numbers keep
their text. Comments of YAML are lost; conversion-operator rewrite keeps them.

A backup is the .tar.gz file of Velero, which velero backup download writes. The
output is a backup with the same files in the same order, in which the objects of the
policy's kind, and the folders for their version, have changed. It is complete before
the command writes it to stdout; until then it needs space in the folder for temporary
files, which TMPDIR sets.

An archive of a policy (conversion-operator archive) needs no --crd, and converts also
when the CustomResourceDefinition in the cluster has lost the old version. If a file
has several policies, POLICY is the name of one of them.

Exit codes:
  0  all objects were converted
  1  an object cannot be converted; the command wrote nothing to stdout
  2  a flag is wrong, a file cannot be read, or the policy is not valid`,
		Example: `  conversion-operator convert --policy policy.yaml --crd crd.yaml --to v1 -f objects.yaml
  kubectl get crontabs -A -o json | conversion-operator convert --policy policy.yaml --crd crd.yaml --to v1
  conversion-operator convert --policy archive.yaml --to v1 < backup.tar.gz > converted.tar.gz`,
	}
	flags := command.Flags()
	options.definitions.addFlags(flags)
	flags.StringVar(&options.ruleset, "ruleset", "", "hash that the compiled rules must have; default that in the archive of the policy")
	flags.StringVar(&options.to, "to", "", "version to convert to, for example v1")
	flags.StringArrayVarP(&options.files, "filename", "f", nil, "file or directory of objects, or a backup of Velero, - for stdin; can be given several times; default stdin")
	flags.StringVarP(&options.output, "output", "o", "", "output format of objects: yaml or json; default that of the input")
	return forUsers(command, cobra.MaximumNArgs(1), options.run)
}

func (o *convertOptions) run(command *cobra.Command, args []string) error {
	if err := o.validate(command.InOrStdin()); err != nil {
		return err
	}
	name := strings.Join(args, "")
	ruleset, err := o.compile(command.Context(), name)
	if err != nil {
		return err
	}
	converter, err := conversion.NewConverter(ruleset)
	if err != nil {
		return err
	}
	stdin := bufio.NewReader(stdinOf(command))
	is, err := o.isBackup(stdin)
	if err != nil {
		return err
	}
	if is {
		return o.convertBackup(command, converter, ruleset, stdin)
	}
	documents, err := manifest.ReadAll(o.files, stdin)
	if err != nil {
		return err
	}
	if err := o.convert(converter, ruleset, documents); err != nil {
		return err
	}
	return manifest.Write(command.OutOrStdout(), manifest.Form(o.output), documents)
}

// compile returns the rules, with the expected hash.
func (o *convertOptions) compile(ctx context.Context, name string) (*conversion.Ruleset, error) {
	policy, _, result, err := o.definitions.compile(ctx, name, nil)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(result.Ruleset.Versions, o.to) {
		return nil, fmt.Errorf("--to must be one of %s, is %q", strings.Join(result.Ruleset.Versions, ", "), o.to)
	}
	return result.Ruleset, checkRuleset(o.definitions.policy, policy, result.Ruleset, o.ruleset)
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

// convert replaces all objects of the kind, and returns the errors of all that it cannot convert.
func (o *convertOptions) convert(converter *conversion.Converter, ruleset *conversion.Ruleset, documents []manifest.Document) error {
	var errs []error
	found := false
	for i, document := range documents {
		isList := document.IsList() && isOfGroup(manifest.NewObject("", document.JSON), ruleset.Group, ruleset.Kind+"List")
		converted, err := document.Replace(func(object manifest.Object) ([]byte, error) {
			switch isItem := isOfGroup(object, ruleset.Group, ruleset.Kind); {
			case isList && !isItem:
				return nil, fmt.Errorf("an item of a %[1]sList must have the kind %[1]s, and an apiVersion of %[2]s: add them", ruleset.Kind, ruleset.Group)
			case !isItem:
				return object.JSON, nil
			}
			found = true
			return converter.Convert(nil, object.JSON, o.to)
		})
		if err == nil && isList {
			// The list of one kind has the version of its items.
			found = true
			converted, err = converted.SetAPIVersion(ruleset.Group + "/" + o.to)
		}
		documents[i] = converted
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return &exitError{exitFound, err}
	}
	if !found {
		return fmt.Errorf("%s has no objects of the kind %s of %s", sourcesOf(o.files), ruleset.Kind, ruleset.Group)
	}
	return nil
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

// isBackup reports whether the input is a backup, which is the only input then.
func (o *convertOptions) isBackup(stdin *bufio.Reader) (bool, error) {
	for _, file := range o.files {
		is, err := isCompressed(file, stdin)
		switch {
		case err != nil:
			return false, err
		case is && len(o.files) > 1:
			return false, fmt.Errorf("%s is a backup: convert it alone, without other files", sourcesOf([]string{file}))
		case is && o.output != "":
			return false, errors.New("-o is for objects: a backup keeps its format")
		case is:
			return true, nil
		}
	}
	return false, nil
}

// isCompressed reports whether a file begins like a compressed archive. It consumes nothing of stdin, or of
// a pipe, which could not be read again.
func isCompressed(name string, stdin *bufio.Reader) (bool, error) {
	if name == manifest.Stdin {
		start, _ := stdin.Peek(2) // an error comes again when it is read
		return backup.IsCompressed(start), nil
	}
	info, err := os.Stat(name)
	if err != nil || !info.Mode().IsRegular() {
		return false, err
	}
	file, err := os.Open(name)
	if err != nil {
		return false, err
	}
	defer func() { _ = file.Close() }() // it was only read
	start := make([]byte, 2)
	_, err = io.ReadFull(file, start)
	return err == nil && backup.IsCompressed(start), nil
}

// convertBackup writes the converted backup to stdout once it is complete.
func (o *convertOptions) convertBackup(command *cobra.Command, converter *conversion.Converter, ruleset *conversion.Ruleset, stdin io.Reader) (err error) {
	if isTerminal(command.OutOrStdout()) {
		return errors.New("a backup cannot be shown in a terminal: send it to a file, for example with > converted.tar.gz")
	}
	if o.files[0] != manifest.Stdin {
		file, err := os.Open(o.files[0])
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }() // it was only read
		stdin = file
	}
	complete, err := os.CreateTemp("", "converted-*.tar.gz")
	if err != nil {
		return fmt.Errorf("create a temporary file: %w", err)
	}
	// A signal may end the command while it writes to a pipe. Windows only removes a file that is closed.
	removed := os.Remove(complete.Name()) == nil
	defer func() {
		if err = errors.Join(err, complete.Close()); !removed {
			err = errors.Join(err, os.Remove(complete.Name()))
		}
	}()
	converting := backup.Conversion{Resource: ruleset.CRD, To: o.to, Convert: func(object []byte) ([]byte, error) {
		return converter.Convert(nil, object, o.to)
	}}
	result, err := converting.Run(complete, bufio.NewReader(until{command.Context(), stdin}))
	if err != nil {
		return fmt.Errorf("%s: %w", sourcesOf(o.files), err)
	}
	if len(result.Problems) > 0 {
		return &exitError{exitFound, problemsOf(result)}
	}
	if _, err := complete.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if _, err := io.Copy(command.OutOrStdout(), complete); err != nil {
		return fmt.Errorf("write the backup, which is not complete now: %w", err)
	}
	fmt.Fprintf(command.ErrOrStderr(), "%s: objects converted to %s: %d, at %s before: %d; other files, unchanged: %d\n",
		ruleset.CRD, o.to, result.Converted, o.to, result.Current, result.Others)
	return nil
}

// problemsOf returns an error with a line for each problem.
func problemsOf(result *backup.Result) error {
	lines := []string{"objects in the backup cannot be converted, so nothing was written:"}
	for _, problem := range result.Problems {
		lines = append(lines, "  "+problem.Error())
	}
	if result.More > 0 {
		lines = append(lines, fmt.Sprintf("  and %d more", result.More))
	}
	return errors.New(strings.Join(lines, "\n"))
}
