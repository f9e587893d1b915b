// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// Account is a ServiceAccount of the operator: the manager's by its name, and those of policies by
// their purpose.
type Account string

// The accounts that send requests to API servers.
const (
	Manager Account = "manager"
	Migrate Account = "migrate"
	Read    Account = "read"
	Clear   Account = "clear"
)

// Use is a request of an account.
type Use struct {
	By Account
	// Namespace is empty for cluster-scoped resources, and for lists in all namespaces.
	Namespace string
	On, Verb  string
}

// Log is the relevant content of an audit log.
type Log struct {
	// Used has every request that was allowed.
	Used map[Use]bool
	// Forbidden are the requests that RBAC denied, without those that were waiting for a new role.
	Forbidden []string
	// Refused are the requests that a ValidatingAdmissionPolicy denied, without dry runs: the
	// manager tests by one whether it is confined.
	Refused []string
}

// managerAccount is the name of the manager's ServiceAccount.
const managerAccount = "conversion-operator"

// ReadLog reads an audit log with one event of the operator's accounts per line. It ignores
// requests of the pods in without, which run another version.
func ReadLog(from io.Reader, namespace string, without map[string]bool) (*Log, error) {
	log := &Log{Used: map[Use]bool{}}
	waiting := map[string]string{}
	err := readEvents(from, func(event *auditv1.Event) {
		if !without[podOf(event)] {
			log.add(event, namespace, waiting)
		}
	})
	for _, request := range waiting {
		log.Forbidden = append(log.Forbidden, request)
	}
	slices.Sort(log.Forbidden)
	return log, err
}

func readEvents(from io.Reader, each func(*auditv1.Event)) error {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		event := &auditv1.Event{}
		if err := json.Unmarshal(lines.Bytes(), event); err != nil {
			return fmt.Errorf("the audit log has %q: %w", lines.Text(), err)
		}
		each(event)
	}
	return lines.Err()
}

// podOf returns the pod of the request's token, if any.
func podOf(event *auditv1.Event) string {
	if names := event.User.Extra["authentication.kubernetes.io/pod-name"]; len(names) == 1 {
		return names[0]
	}
	return ""
}

// add adds an event. An API server sees a new role with a delay, and the manager retries until
// then: a request under another account that was forbidden at first and allowed later lacked no
// right.
func (l *Log) add(event *auditv1.Event, namespace string, waiting map[string]string) {
	user := event.User.Username
	if event.ImpersonatedUser != nil {
		user = event.ImpersonatedUser.Username
	}
	by, ours := accountOf(user, namespace)
	if !ours {
		return
	}
	use := useOf(event, by)
	request := fmt.Sprintf("%s: %s %s in %q", user, use.Verb, use.On, use.Namespace)
	switch {
	case event.ResponseStatus == nil:
		return
	case event.Annotations["authorization.k8s.io/decision"] == "forbid":
		waiting[request] = request + ": " + event.ResponseStatus.Message
		return
	case strings.Contains(event.ResponseStatus.Message, "ValidatingAdmissionPolicy"):
		if !isDryRun(event) {
			l.Refused = append(l.Refused, request+": "+event.ResponseStatus.Message)
		}
		return
	}
	if by != Manager {
		delete(waiting, request)
	}
	l.Used[use] = true
	for _, more := range l.implied(event, use) {
		l.Used[more] = true
	}
}

// isDryRun reports whether the request asked an API server to store nothing.
func isDryRun(event *auditv1.Event) bool { return strings.Contains(event.RequestURI, "dryRun=All") }

// implied returns the other rights that the request needed.
func (l *Log) implied(event *auditv1.Event, use Use) []Use {
	with := func(verb string) Use { return Use{use.By, use.Namespace, use.On, verb} }
	var more []Use
	if use.Verb == "patch" && event.ResponseStatus.Code == http.StatusCreated {
		more = append(more, with("create")) // a server-side apply that creates the object
	}
	if address, err := url.Parse(event.RequestURI); err == nil && address.Query().Get("sendInitialEvents") == "true" {
		more = append(more, with("list")) // a watch that begins with the list
	}
	if event.ImpersonatedUser != nil {
		account := event.ImpersonatedUser.Username
		more = append(more, Use{Manager, strings.Split(account, ":")[2], "serviceaccounts", "impersonate"})
	}
	if use.By == Manager && use.Verb == "patch" {
		switch use.On {
		case "clusterroles.rbac.authorization.k8s.io": // with rights that the manager does not have
			more = append(more, with("escalate"))
		case "clusterrolebindings.rbac.authorization.k8s.io":
			more = append(more, Use{use.By, "", "clusterroles.rbac.authorization.k8s.io", "bind"})
		case "roles.rbac.authorization.k8s.io": // with rights that the manager has to have
			more = append(more, Use{use.By, use.Namespace, "configmaps", "get"})
		}
	}
	return more
}

func useOf(event *auditv1.Event, by Account) Use {
	use := Use{By: by, Verb: event.Verb}
	reference := event.ObjectRef
	if reference == nil || reference.Resource == "" {
		use.On, _, _ = strings.Cut(event.RequestURI, "?")
		return use
	}
	resource := reference.Resource
	if reference.Subresource != "" {
		resource += "/" + reference.Subresource
	}
	use.On, use.Namespace = of(resource, reference.APIGroup), reference.Namespace
	return use
}

func accountOf(user, namespace string) (Account, bool) {
	name, ours := strings.CutPrefix(user, "system:serviceaccount:"+namespace+":")
	if !ours {
		return "", false
	}
	if name == managerAccount {
		return Manager, true
	}
	for _, account := range []Account{Migrate, Read, Clear} {
		if strings.HasSuffix(name, "-"+string(account)) {
			return account, true
		}
	}
	return Account(name), true
}

// Unused returns the sorted rights without a use and without a proof.
func (l *Log) Unused(roles []Role) []Right {
	var unused []Right
	for _, role := range roles {
		for _, reason := range role.Rules {
			if reason.Proof != "" {
				continue
			}
			for _, verb := range reason.Verbs {
				if right := (Right{role.Role, reason.On, verb}); !l.used(right) {
					unused = append(unused, right)
				}
			}
		}
	}
	slices.SortFunc(unused, compare)
	return unused
}

// used reports whether an account with the right used it in its scope.
func (l *Log) used(right Right) bool {
	account, made := strings.CutPrefix(right.Role, "<policy>-")
	_, namespace, namespaced := strings.Cut(right.Role, " in ")
	for use := range l.Used {
		switch {
		case use.Verb != right.Verb:
		case made && use.By != Account(account):
		case right.On == "<objects>" && isObject(use.On):
			return true
		case use.On != right.On:
		case namespaced && use.Namespace == namespace:
			return true
		case !namespaced && (made || use.Namespace != "conversion-system"):
			return true
		}
	}
	return false
}

// isObject reports whether the resource is defined by a CRD of the stories.
func isObject(resource string) bool { return strings.HasSuffix(resource, ".example.com") }

// Leading has the leaders and the writes of managers in an audit log.
type Leading struct {
	// Leaders are the pods that held the lease, in order.
	Leaders []string
	// WithoutLease are writes of managers that did not hold the lease.
	WithoutLease []string
}

// asked are resources that managers create whether they lead or not: checks of clients that read
// metrics, of their own name, and events, which are sent with a delay.
var asked = []string{"tokenreviews", "subjectaccessreviews", "selfsubjectreviews", "events"}

// ReadLeading reads from an audit log who led when a manager wrote something. The leader is the
// last writer of the lease: others cannot write it while it is valid, and a manager releases it
// only after its work has ended.
func ReadLeading(from io.Reader, namespace string) (*Leading, error) {
	var written []*auditv1.Event
	err := readEvents(from, func(event *auditv1.Event) {
		by, ours := accountOf(event.User.Username, namespace)
		if ours && by == Manager && isWrite(event) {
			written = append(written, event)
		}
	})
	slices.SortStableFunc(written, func(a, b *auditv1.Event) int {
		return a.RequestReceivedTimestamp.Compare(b.RequestReceivedTimestamp.Time)
	})
	leading := &Leading{}
	for _, event := range written {
		leading.add(event)
	}
	return leading, err
}

// isWrite reports whether a request changed something that only the leader may change.
func isWrite(event *auditv1.Event) bool {
	return event.ObjectRef != nil && event.ResponseStatus != nil && event.ResponseStatus.Code < 300 && !isDryRun(event) &&
		slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, event.Verb) &&
		!slices.Contains(asked, event.ObjectRef.Resource)
}

func (l *Leading) add(event *auditv1.Event) {
	pod, leader := podOf(event), ""
	if len(l.Leaders) > 0 {
		leader = l.Leaders[len(l.Leaders)-1]
	}
	switch {
	case pod == leader:
	case event.ObjectRef.Resource == "leases":
		l.Leaders = append(l.Leaders, pod)
	default:
		l.WithoutLease = append(l.WithoutLease, fmt.Sprintf("%s: pod %s: %s %s %s, while %q led",
			event.RequestReceivedTimestamp.UTC().Format(time.RFC3339Nano), pod, event.Verb, event.ObjectRef.Resource, event.ObjectRef.Name, leader))
	}
}
