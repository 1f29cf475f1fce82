# shellcheck shell=bash
# A bare Debian in a directory, made by debootstrap, and commands that run in it.
#
# It is mounted in namespaces of the command's own: nothing stays mounted and no process is left when the command ends, so that
# the directory can be removed at any time.

# What a person has who types `git clone` and `make`.
CHROOT_PACKAGES=git,make,ca-certificates
# Variables that a command sees of the caller's: the way to the network, and whether it is CI that runs.
CHROOT_VARIABLES=(http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY PIP_INDEX_URL PIP_EXTRA_INDEX_URL
    UV_DEFAULT_INDEX UV_INDEX CI TERM)

# not_here REASON: end with one message, and with the status by which callers know that nothing was tried.
not_here() {
    printf '\npffbench set-up: NOT PROVED HERE: no Debian %s on this machine: %s\n' "$RELEASE" "$*" >&2
    exit 77
}

# need_means: what it takes to make and enter such a system, debootstrap installed where it is missing.
need_means() {
    local said name
    [[ $(id -u) == 0 ]] || not_here "making one and entering it takes root"
    for name in dpkg git unshare; do
        type -P "$name" >/dev/null || not_here "the program $name is missing"
    done
    said=$(unshare --mount --pid --fork mount --bind / / 2>&1) || not_here "nothing may be mounted (${said:-unshare failed})"
    if ! type -P debootstrap >/dev/null; then
        SUDO=
        [[ $(install_right) == root ]] || not_here "debootstrap is not installed, and there is no right to install it"
        step apt-update "refreshing the list of system packages" apt update || true
        step apt-debootstrap "installing debootstrap" apt install -y --no-install-recommends debootstrap ||
            not_here "debootstrap could not be installed"
    fi
}

# debian_mirror: the one that this system is installed from.
debian_mirror() {
    local mirror
    # shellcheck disable=SC2016  # apt's own variables
    mirror=$(apt-get indextargets --format '$(ORIGIN) $(LABEL) $(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
        sed -nE 's/^Debian Debian //p' | sed -n 1p) || true
    echo "${mirror:-http://deb.debian.org/debian}"
}

# need_base: make BASE, the system that is never changed afterwards.
need_base() {
    if [[ -e $BASE/.made ]]; then return 0; fi
    # What an interrupted call left; the packages that it fetched are taken again.
    rm -rf "$BASE.new"
    mkdir -p "$BASE.packages"
    step "chroot-$RELEASE" "making a bare Debian $RELEASE in $BASE" make_base ||
        not_here "debootstrap failed ($(grep -E '^[EW]: ' "$BUILD/logs/chroot-$RELEASE.log" | tail -n 1))"
}

# Joined by &&: `set -e` is off inside a command whose failure is handled. debootstrap mounts too, and may be interrupted.
make_base() {
    unshare --mount --propagation private debootstrap --variant=minbase --include="$CHROOT_PACKAGES" --cache-dir="$BASE.packages" "$RELEASE" "$BASE.new" \
        "$(debian_mirror)" &&
        trust_the_same && install_without_syncs && touch "$BASE.new/.made" && rm -rf "$BASE" && mv "$BASE.new" "$BASE" && rm -rf "$BASE.packages"
}

# trust_the_same: the certificates and the index that an administrator has set up here.
trust_the_same() {
    if compgen -G '/usr/local/share/ca-certificates/*.crt' >/dev/null; then
        cp /usr/local/share/ca-certificates/*.crt "$BASE.new/usr/local/share/ca-certificates" &&
            chroot "$BASE.new" update-ca-certificates || return
    fi
    if [[ -e /etc/pip.conf ]]; then cp /etc/pip.conf "$BASE.new/etc/pip.conf"; fi
}

# install_without_syncs: have dpkg not wait for the disk after each file, as in the images of Debian that containers start from.
install_without_syncs() {
    mkdir -p "$BASE.new/etc/dpkg/dpkg.cfg.d" && echo force-unsafe-io >"$BASE.new/etc/dpkg/dpkg.cfg.d/no-waiting"
}

# need_tree: a copy of BASE that commands change.
need_tree() {
    if [[ $BARE == yes ]]; then rm -rf "$TREE"; fi
    if [[ -e $TREE/.made ]]; then return 0; fi
    rm -rf "$TREE" "$TREE.new"
    cp -a --reflink=auto "$BASE" "$TREE.new"
    mv "$TREE.new" "$TREE"
}

# clone_checkout: set the clone in TREE to the commit of this checkout; what is ignored there stays.
clone_checkout() {
    local clone=$TREE/root/pffbench
    # Root may not be the owner of the checkout, as in containers of CI; its programs run anyway.
    local -x GIT_CONFIG_GLOBAL=$STORE/gitconfig
    git config --file "$GIT_CONFIG_GLOBAL" safe.directory '*'
    if [[ -n $(git -C "$ROOT" status --porcelain) ]]; then say "what is not committed in this checkout does not take part"; fi
    mkdir -p "$clone"
    git -C "$clone" init --quiet
    git -C "$clone" fetch --quiet --force "file://$ROOT" HEAD
    git -C "$clone" checkout --quiet --force -B main FETCH_HEAD
    git -C "$clone" clean --quiet -d --force
}

# enter [NAME=VALUE…] COMMAND ARG…: run it in the clone, with a process table and a shared memory of its own. The system becomes
# the root of the mounts: after a mere chroot the kernel lets nobody make namespaces for users, which the Slurm tests need.
enter() {
    local name variables=(HOME=/root LANG=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin)
    for name in "${CHROOT_VARIABLES[@]}"; do if [[ -v $name ]]; then variables+=("$name=${!name}"); fi; done
    # shellcheck disable=SC2016  # expanded by the shell inside
    unshare --mount --propagation private --pid --fork --kill-child bash -euc '
        tree=$1
        shift
        mount --bind "$tree" "$tree"
        mount -t proc proc "$tree/proc"
        mount --rbind /sys "$tree/sys"
        mount --rbind /dev "$tree/dev"
        mount -t tmpfs -o mode=1777 tmpfs "$tree/dev/shm"
        cp --remove-destination -L /etc/resolv.conf /etc/hosts "$tree/etc/" 2>/dev/null || true
        cd "$tree"
        pivot_root . mnt
        umount --lazy /mnt
        exec env -i -C /root/pffbench "$@"' enter "$TREE" "${variables[@]}" "$@" 9>&-
}
