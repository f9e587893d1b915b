// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cmd

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/conversion-operator/conversion-operator/api/v1alpha1"
	"github.com/conversion-operator/conversion-operator/internal/engine/conversion"
)

// archivedRuleset is an annotation of an archived policy: the hash of its ruleset when it was archived.
const archivedRuleset = "conversion-operator.io/archived-ruleset"

// archiveOptions are the flags of the archive command.
type archiveOptions struct {
	config      *genericclioptions.ConfigFlags
	definitions definitions
}

func newArchiveCommand() *cobra.Command {
	options := archiveOptions{}
	command := &cobra.Command{
		Use:   "archive [POLICY]",
		Short: "Write a policy and its schemas to one file, which converts old backups later",
		Long: `Write a policy and its CustomResourceDefinition to one file, as they are now. With this
file, conversion-operator convert can convert backups when the CustomResourceDefinition
in the cluster has lost the old version. Archive a policy before it removes a version,
and keep the file as long as the backups.

The file, on stdout, is YAML with both objects, without status. Other commands read it
with --policy and --crd. An annotation of the policy has the hash of the ruleset: when
the rules compile to another one, convert says so, and converts nothing; nor is such a
file archived again.

The policy and the CustomResourceDefinition come from files, or from a cluster if
their flag is missing. POLICY is the name of the policy, if there is no file or a
file has several.

Rights: get of conversionpolicies and customresourcedefinitions.

Exit codes:
  0  the archive is written
  2  no archive: a flag is wrong, a file or the cluster cannot be read, or the policy
     is not valid, or has no rules`,
		Example: `  conversion-operator archive crontabs.example.com > archive.yaml
  conversion-operator archive --policy policy.yaml --crd crd.yaml > archive.yaml`,
	}
	options.config = clusterFlags(command)
	options.definitions.addFlags(command.Flags())
	command.ValidArgsFunction = firstArgument(namesIn(options.config, policyKind))
	return forUsers(command, cobra.MaximumNArgs(1), func(command *cobra.Command, args []string) error {
		return options.run(command.Context(), strings.Join(args, ""), command.OutOrStdout())
	})
}

func (o *archiveOptions) run(ctx context.Context, name string, stdout io.Writer) error {
	from, err := o.definitions.clusterFor(o.config)
	if err != nil {
		return err
	}
	policy, crd, result, err := o.definitions.compile(ctx, name, from)
	if err != nil {
		return err
	}
	if changed := changedArchive(cmp.Or(o.definitions.policy, policy.Name), policy, result.Ruleset); changed != "" {
		return fmt.Errorf("%s, and remove its annotation %s", changed, archivedRuleset)
	}
	text, err := archiveOf(policy, crd, result.Ruleset)
	if err != nil {
		return err
	}
	_, err = io.WriteString(stdout, text)
	return err
}

// archiveOf returns the text of an archive: both objects, without what belongs to one cluster.
func archiveOf(policy *v1alpha1.ConversionPolicy, crd *apiextensionsv1.CustomResourceDefinition, ruleset *conversion.Ruleset) (string, error) {
	rules, err := written(&v1alpha1.ConversionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: policy.Name, Annotations: map[string]string{archivedRuleset: ruleset.Hash()}}, Spec: policy.Spec,
	})
	if err != nil {
		return "", err
	}
	bare := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: crd.Name}, Spec: crd.Spec}
	bare.Spec.Conversion = nil // it names the converter of a cluster
	schemas, err := written(bare)
	head := fmt.Sprintf("# Converts objects of %s between %s, for example in a backup of Velero:\n#   %s convert --policy FILE --to VERSION < backup.tar.gz > converted.tar.gz\n",
		policy.Name, strings.Join(ruleset.Versions, ", "), programName)
	return head + rules + "---\n" + schemas, err
}

// checkRuleset returns an error if rules of a file do not have the hash that the user expects, or that
// the archive of the policy has.
func checkRuleset(file string, policy metav1.Object, ruleset *conversion.Ruleset, expected string) error {
	compiled := ruleset.Hash()
	if expected != "" {
		if expected != compiled {
			return fmt.Errorf("--ruleset is %s, and the rules of %s compile to %s", expected, file, compiled)
		}
		return nil
	}
	if changed := changedArchive(file, policy, ruleset); changed != "" {
		return fmt.Errorf("%s, and accept them with --ruleset=%s", changed, compiled)
	}
	return nil
}

// changedArchive says that the rules of an archive are not those that were archived, and what to do first. It is empty if they
// are, or if the policy is no archive.
func changedArchive(file string, policy metav1.Object, ruleset *conversion.Ruleset) string {
	compiled := ruleset.Hash()
	archived, isArchive := policy.GetAnnotations()[archivedRuleset]
	if !isArchive || archived == compiled {
		return ""
	}
	return fmt.Sprintf("%s was archived with the ruleset %q, and its rules compile to %s now: the file was changed, or another version of this program wrote it; "+
		"test the rules, for example with %s verify", file, archived, compiled, programName)
}
