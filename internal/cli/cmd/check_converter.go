// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/conversion-operator/conversion-operator/internal/cli/export"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
)

// checkConverterOptions are the flags of the check-converter command.
type checkConverterOptions struct {
	config             *genericclioptions.ConfigFlags
	name, rulesets, ca string
	timeout            time.Duration
}

func newCheckConverterCommand() *cobra.Command {
	o := checkConverterOptions{}
	command := &cobra.Command{
		Use:   export.CheckCommand,
		Short: "Wait until each pod of an exported converter serves its rules, in a pod",
		Long: `Wait until each pod of an exported converter serves its rules, in a pod of the Job that
conversion-operator export writes. It connects to each ready pod, verifies its
certificate as API servers do, and converts an object for each pair of versions. Pods
get changed rules from the kubelet, within a minute or two.

Rights: list of pods in the namespace. It exits with 0 when all pods have answered, and
with 1 if they have not in time.`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return o.run(command) },
	}
	o.config = namespacedFlags(command, "namespace of the converter")
	flags := command.Flags()
	flags.StringVar(&o.name, "name", "", "name of the converter")
	flags.StringVar(&o.rulesets, "rulesets", "", "directory of the rulesets that the pods must serve")
	flags.StringVar(&o.ca, "ca", "", "file of the certificate authority")
	flags.DurationVar(&o.timeout, "timeout", 10*time.Minute, "how long to wait")
	for _, flag := range []string{"namespace", "name", "rulesets", "ca"} {
		_ = command.MarkFlagRequired(flag) // the flag is there
	}
	return command
}

func (o *checkConverterOptions) run(command *cobra.Command) (err error) {
	check := export.Check{Name: o.name, Namespace: *o.config.Namespace, Every: time.Second}
	if check.Rulesets, err = rulesetsIn(o.rulesets); err != nil {
		return fmt.Errorf("--rulesets: %w", err)
	}
	if check.CABundle, err = os.ReadFile(o.ca); err != nil {
		return fmt.Errorf("--ca: %w", err)
	}
	if check.Client, err = connect(o.config); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(command.Context(), o.timeout, fmt.Errorf("not all converter pods serve the rules after %s", o.timeout))
	defer cancel()
	pods, err := check.Wait(ctx, func(what string) { fmt.Fprintln(command.ErrOrStderr(), "waiting:", what) })
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(command.OutOrStdout(), "%d converter pods answered for %d rulesets\n", pods, len(check.Rulesets))
	return err
}

// rulesetsIn returns the stored rulesets in a directory.
func rulesetsIn(directory string) (found []*conversion.Ruleset, err error) {
	files, err := filepath.Glob(filepath.Join(directory, conversion.StoredName("*", "*")))
	if err == nil && len(files) == 0 {
		err = errors.New("there is no ruleset in " + directory)
	}
	for _, file := range files {
		stored, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		hash, _ := conversion.StoredHash(file)
		ruleset, err := conversion.LoadStored(hash, stored)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		found = append(found, ruleset)
	}
	return found, err
}
